import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { fastFolder } from "../../../../test/support/fast-folder.ts";
import { rejectionOf } from "../../../../test/support/refusal-of.ts";
import { reseal, rewriteColumn } from "../../../../test/support/replay-tamper.ts";
import { ReplayWorld } from "../../../../test/support/replay-world.ts";
import { manualClock } from "../../../base/clock.ts";
import { digestBytes } from "../../../base/digest.ts";
import {
  appendReplay,
  collectOrphans,
  compactReplay,
  openReplay,
  readDense,
  validateReplay,
  writeReplay,
} from "../index.ts";
import { FileStore, openGroup } from "../zarr/index.ts";

const folder = fastFolder("replay-compact");
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const HEAD = digestBytes("rollbook.head.v1", new Uint8Array(0));
const quick = { clock: manualClock(1), durable: false } as const;

describe("compaction", () => {
  const world = new ReplayWorld({ seed: 4 });
  world.add(18);
  const [many, plain] = [join(folder, "many"), join(folder, "plain")];

  it("of many segments gives the tables that one segment would have had", async () => {
    await writeReplay({
      root: many,
      read: world.read,
      rollouts: world.rollouts,
      limits: { candidates: 30 },
      ...quick,
    });
    const one = join(folder, "one");
    const { manifest } = await writeReplay({
      root: one,
      read: world.read,
      rollouts: world.rollouts,
      ...quick,
    });
    const compacted = await compactReplay({ from: many, to: plain, ...quick });
    expect(compacted.layout).toBe("plain");
    expect(compacted.rows).toEqual(manifest.rows);
    expect(compacted.segments[0]!.hashes).toEqual(manifest.segments[0]!.hashes);
    // Texts and sources are merged in segment order, which may differ.
    const stable = Object.keys(manifest.segments[0]!.arrays).filter((path) =>
      /^(tokens\/(?!policy)|candidates\/(?!id|provenance)|chains\/(content|steps|tokens)|steps\/(before|after|gain|parent)|q_h\/(?!source|target))/.test(
        path,
      ),
    );
    for (const path of stable)
      expect([path, compacted.segments[0]!.arrays[path]]).toEqual([path, manifest.segments[0]!.arrays[path]]);
    expect(stable.length).toBeGreaterThan(40);
    expect((await validateReplay(plain)).errors).toEqual([]);
    expect(existsSync(`${plain}.partial`)).toBe(false);
  });

  it("makes one tree whose root carries the metadata of every array", async () => {
    const root = await openGroup(new FileStore(plain), "");
    expect(root.attributes).toMatchObject({ schema: "rollbook.replay", version: 1, layout: "plain" });
    expect(root.consolidated?.size).toBeGreaterThan(100);
  });

  it("remembers what it was made from, and can be compacted into another layout", async () => {
    const again = join(folder, "again");
    const { compactedFrom } = await compactReplay({
      from: plain,
      to: again,
      layout: { codec: "zstd" },
      ...quick,
    });
    const store = await openReplay(plain);
    expect(compactedFrom).toBe(store.manifest.digest);
    const other = await openReplay(again);
    expect(await readDense(other)).toEqual(await readDense(store));
    store.close();
    other.close();
  });

  it("never writes over anything, and its result takes no segments", async () => {
    expect(await rejectionOf(compactReplay({ from: many, to: plain, ...quick }))).toMatchObject({
      code: "replay-exists",
    });
    const append = appendReplay({ root: plain, read: world.read, rollouts: world.add(1), ...quick });
    expect(await rejectionOf(append)).toMatchObject({ code: "replay-is-plain" });
  });

  it("of a damaged store fails and leaves nothing behind", async () => {
    const chunk = join(many, "segments", "s000001", "steps", "gain", "c", "0");
    const bytes = readFileSync(chunk);
    writeFileSync(
      chunk,
      bytes.map((byte) => byte ^ 1),
    );
    const to = join(folder, "never");
    expect(await rejectionOf(compactReplay({ from: many, to, ...quick }))).toMatchObject({
      code: "replay-bad-segment",
    });
    expect([existsSync(to), existsSync(`${to}.partial`)]).toEqual([false, false]);
  });
});

it("what a dead compaction left makes way, what is somebody's does not", async () => {
  const world = new ReplayWorld({ seed: 9 });
  const [from, to] = [join(folder, "partial-from"), join(folder, "partial-to")];
  await writeReplay({ root: from, read: world.read, rollouts: world.add(2), ...quick });
  mkdirSync(join(`${to}.partial`, "steps"), { recursive: true });
  writeFileSync(join(`${to}.partial`, "mine.txt"), "precious");
  const refused = await rejectionOf(compactReplay({ from, to, ...quick }));
  expect(refused).toMatchObject({ code: "not-empty", message: expect.stringContaining("mine.txt") });
  rmSync(join(`${to}.partial`, "mine.txt"));
  await compactReplay({ from, to, ...quick });
  expect((await validateReplay(to)).errors).toEqual([]);
});

describe("orphans", () => {
  const world = new ReplayWorld({ seed: 8 });

  it("are collected, and nothing else is", async () => {
    const root = join(folder, "orphans");
    await writeReplay({ root, read: world.read, rollouts: world.add(3), ...quick });
    mkdirSync(join(root, "segments", "s000007", "steps"), { recursive: true });
    writeFileSync(join(root, "manifest.json.tmp"), "half");
    expect(await collectOrphans(root)).toEqual(["segments/s000007"]);
    expect(existsSync(join(root, "manifest.json.tmp"))).toBe(false);
    expect(await collectOrphans(root)).toEqual([]);
    expect((await validateReplay(root)).errors).toEqual([]);
  });

  it("never lend their name to a new segment", async () => {
    const root = join(folder, "names");
    await writeReplay({ root, read: world.read, rollouts: world.add(1), ...quick });
    mkdirSync(join(root, "segments", "s000002"), { recursive: true });
    const { manifest } = await appendReplay({ root, read: world.read, rollouts: world.add(1), ...quick });
    expect(manifest.segments.map(({ path }) => path)).toEqual(["segments/s000001", "segments/s000003"]);
  });

  it("are not what an old manifest, put back, fails to list: gc and append refuse it", async () => {
    const root = join(folder, "stale");
    await writeReplay({ root, read: world.read, rollouts: world.add(1), ...quick });
    const old = readFileSync(join(root, "manifest.json"));
    await appendReplay({ root, read: world.read, rollouts: world.add(1), ...quick });
    const newest = readFileSync(join(root, "manifest.json"));
    writeFileSync(join(root, "manifest.json"), old);
    const stale = { code: "replay-bad-root", message: expect.stringContaining("stale") };
    expect(await rejectionOf(collectOrphans(root))).toMatchObject(stale);
    const append = appendReplay({ root, read: world.read, rollouts: world.add(1), ...quick });
    expect(await rejectionOf(append)).toMatchObject(stale);
    writeFileSync(join(root, "manifest.json"), newest);
    expect((await validateReplay(root)).errors).toEqual([]);
  });

  it("are not looked for where there is no store", async () => {
    const other = join(folder, "other");
    mkdirSync(join(other, "segments", "precious"), { recursive: true });
    expect(await rejectionOf(collectOrphans(other))).toMatchObject({ code: "no-replay-store" });
    expect(existsSync(join(other, "segments", "precious"))).toBe(true);
  });

  it("refuses a column that was changed with fitting checksums, and leaves nothing behind", async () => {
    const [from, to] = [join(folder, "changed"), join(folder, "laundered")];
    await writeReplay({ root: from, read: world.read, rollouts: world.rollouts, head: HEAD, ...quick });
    const before = readFileSync(join(from, "manifest.json"));
    await rewriteColumn<Float32Array>(from, "steps/reward", {
      change: (values) => void values.fill(1),
    });
    // The forger cannot seal the manifest again, because its digest is known elsewhere.
    const root = JSON.parse(before.toString());
    const changed = JSON.parse(readFileSync(join(from, "manifest.json"), "utf8"));
    changed.segments[0].arrays["steps/reward"] = root.segments[0].arrays["steps/reward"];
    reseal(from, changed);
    expect(await rejectionOf(compactReplay({ from, to, ...quick }))).toMatchObject({
      code: "replay-bad-segment",
      message: expect.stringContaining("steps/reward has digest"),
    });
    expect([existsSync(to), existsSync(`${to}.partial`)]).toEqual([false, false]);
  });

  it("keeps the heads of the book that its segments were written from", async () => {
    const [from, to] = [join(folder, "headed"), join(folder, "headed-plain")];
    await writeReplay({ root: from, read: world.read, rollouts: world.rollouts, head: HEAD, ...quick });
    expect((await compactReplay({ from, to, ...quick })).segments[0]!.heads).toEqual([HEAD]);
  });
});
