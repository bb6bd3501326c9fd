import { describe, expect, it } from "vitest";
import { Cli } from "../support/cli.ts";

describe("rollbook demo", () => {
  it("shows every scene, twice with the same digests, and leaves a book that verifies", async () => {
    const cli = new Cli();
    const first = await cli.ok("demo");
    expect(first.match(/✓/g)).toHaveLength(first.match(/^\d+\. /gm)!.length);
    expect(first).not.toContain("✗");
    const again = await cli.run(["demo", "--book", cli.book]);
    expect(again).toMatchObject({ code: 0, out: first });
    expect(await cli.ok("verify")).toContain("self-consistent: yes");
    expect(await cli.run(["demo", "--book", cli.book])).toMatchObject({
      code: 1,
      err: expect.stringContaining("book-exists"),
    });
  }, 180_000);

  it("has other rollouts under another seed, and a line of JSON per scene", async () => {
    const cli = new Cli();
    const [one, two] = [await cli.json("demo"), await cli.json("demo --seed 2")];
    const scene = (all: { scene: string }[], name: string) => all.find((each) => each.scene === name);
    expect(scene(one, "revisions")).toEqual(scene(two, "revisions"));
    expect(scene(one, "rollouts")).not.toEqual(scene(two, "rollouts"));
    expect(scene(one, "tamper")).toMatchObject({ found: true });
    expect(scene(one, "another order")).toMatchObject({ same: true });
    expect(scene(one, "agents act in the sandbox")).toMatchObject({ rollouts: 12, foretold: 12 });
  }, 180_000);
});
