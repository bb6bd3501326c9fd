import { describe, expect, it } from "vitest";
import { readTree } from "./group.ts";
import { type ArrayMetadata, consolidate, createArray, openArray, openGroup, writeGroup } from "./index.ts";

async function smallTree(): Promise<Map<string, Uint8Array>> {
  const store = new Map<string, Uint8Array>();
  await writeGroup(store, "", { schema: "x.v1" });
  await writeGroup(store, "steps");
  await writeGroup(store, "steps/deep", { note: "né" });
  for (const path of ["steps/reward", "steps/deep/seed"]) {
    const writer = createArray(store, path, { dtype: "float64", attributes: { path } });
    await writer.append(Float64Array.of(1, 2, 3));
    await writer.close();
  }
  return store;
}

describe("a group", () => {
  it("carries the metadata of everything below it once it is consolidated", async () => {
    const store = await smallTree();
    expect((await openGroup(store, "")).consolidated).toBeUndefined();
    const whole = await consolidate(store, "");
    expect(await openGroup(store, "")).toEqual(whole);
    expect(whole.attributes).toEqual({ schema: "x.v1" });
    expect([...whole.consolidated!.keys()]).toEqual([
      "steps",
      "steps/deep",
      "steps/deep/seed",
      "steps/reward",
    ]);
    for (const path of ["steps/reward", "steps/deep/seed"]) {
      const metadata = whole.consolidated!.get(path) as ArrayMetadata;
      expect(metadata).toEqual((await openArray(store, path)).metadata);
      expect(await (await openArray(store, path, { metadata })).read()).toEqual(Float64Array.of(1, 2, 3));
    }
    expect(whole.consolidated!.get("steps")!.kind).toBe("group");
  });

  it("consolidates to the same bytes twice, and below the root by relative paths", async () => {
    const store = await smallTree();
    await consolidate(store, "steps");
    expect([...(await openGroup(store, "steps")).consolidated!.keys()]).toEqual([
      "deep",
      "deep/seed",
      "reward",
    ]);
    await consolidate(store, "");
    const first = store.get("zarr.json");
    await consolidate(store, "");
    expect(store.get("zarr.json")).toEqual(first);
  });

  it("whose copy differs from a node below shows it to whoever reads the tree itself", async () => {
    const store = await smallTree();
    const { consolidated } = await consolidate(store, "");
    expect(await readTree(store, "")).toEqual(consolidated);
    const edited = Buffer.from(store.get("steps/reward/zarr.json")!).toString().replace("[3]", "[2]");
    store.set("steps/reward/zarr.json", Buffer.from(edited));
    expect(await readTree(store, "")).not.toEqual(consolidated);
  });

  it("is not an array, and an array is not a group", async () => {
    const store = await smallTree();
    await expect(openGroup(store, "steps/reward")).rejects.toThrow("no group at steps/reward, but an array");
    await expect(openArray(store, "steps")).rejects.toThrow("no array at steps, but a group");
    await expect(openGroup(store, "nowhere")).rejects.toThrow("no group at nowhere");
  });
});
