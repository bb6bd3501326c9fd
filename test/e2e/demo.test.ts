import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { DemoSummary } from "../../src/view/demo-summary.ts";
import { Cli } from "../support/cli.ts";

const SIZE = "--windows 2 --rollouts 40";

describe("rollbook demo", () => {
  it("runs every stage of the loop on simulated tasks, and shows every refusal", async () => {
    const cli = new Cli({ clock: systemClock });
    const out = join(cli.folder, "demo");
    const [summary] = (await cli.json(`demo --out ${out} ${SIZE}`)) as [DemoSummary];
    expect(summary).toMatchObject({
      ...{ seed: 1, rollouts: 80, tasks: 20, gate: { alpha: 0.05, epsilonQuality: 0 } },
      ...{ pack: { verified: true }, replay: { valid: true, chains: 80 } },
    });
    for (const { learners, refusals, outcome } of summary.windows) {
      expect(learners.map(({ name }) => name)).toEqual(["linucb", "bc", "cql", "ppo"]);
      expect(refusals.map(({ learner }) => learner)).toEqual(
        learners.filter(({ passed }) => !passed).map(({ name }) => name),
      );
      for (const { reasons } of refusals) expect(reasons).not.toEqual([]);
      expect(outcome === "released").toBe(learners.some(({ released }) => released));
    }
    const { considered, admitted, excluded } = summary.ledger;
    expect([...admitted, ...excluded].reduce((sum, { rollouts }) => sum + rollouts, 0)).toBe(considered);
    const known = new Set(summary.lineage.nodes.map(({ id }) => id));
    for (const { from, to } of summary.lineage.edges)
      expect([known.has(from), known.has(to)]).toEqual([true, true]);

    const taken = await cli.run(`demo --out ${out}`);
    expect(taken).toMatchObject({ code: 1, err: expect.stringContaining("--resume") });
    // A demo that has ended is shown again as it stands.
    rmSync(join(out, "report.html"));
    const again = await cli.ok(`demo --resume --out ${out}`);
    expect(again).toContain("known optimum");
    expect(again).toContain("window 2 refused bc: ");
    expect(again).toContain(summary.digest.slice(7, 19));
    expect(readFileSync(join(out, "report.html"), "utf8")).toContain("<svg");
    await cli.ok(`pack verify ${join(out, "pack")}`);
  }, 240_000);

  it("says what its flags exclude", async () => {
    const cli = new Cli();
    const out = join(cli.folder, "d");
    for (const [words, said] of [
      [`--out ${out} --rollouts 7`, "give an even number"],
      [`--resume --out ${out}`, "holds no demo"],
      [`--resume --seed 2 --out ${out}`, "with its own seed"],
      [`--tour --windows 2`, "--tour takes no"],
      [`--book ${out}`, "no effect without --tour"],
    ] as const) {
      const { code, err } = await cli.run(`demo ${words}`);
      expect([code > 0, err]).toEqual([true, expect.stringContaining(said)]);
    }
    expect(existsSync(out)).toBe(false);
  });
});

describe("rollbook demo --tour", () => {
  it("shows every scene, twice with the same digests, and leaves a book that verifies", async () => {
    const cli = new Cli();
    const first = await cli.ok("demo --tour");
    expect(first.match(/✓/g)).toHaveLength(first.match(/^\d+\. /gm)!.length);
    expect(first).not.toContain("✗");
    const again = await cli.run(["demo", "--tour", "--book", cli.book]);
    expect(again).toMatchObject({ code: 0, out: first });
    expect(await cli.ok("verify")).toContain("self-consistent: yes");
    expect(await cli.run(["demo", "--tour", "--book", cli.book])).toMatchObject({
      code: 1,
      err: expect.stringContaining("book-exists"),
    });
  }, 180_000);

  it("has other rollouts under another seed, and a line of JSON per scene", async () => {
    const cli = new Cli();
    const [one, two] = [await cli.json("demo --tour"), await cli.json("demo --tour --seed 2")];
    const scene = (all: { scene: string }[], name: string) => all.find((each) => each.scene === name);
    expect(scene(one, "revisions")).toEqual(scene(two, "revisions"));
    expect(scene(one, "rollouts")).not.toEqual(scene(two, "rollouts"));
    expect(scene(one, "tamper")).toMatchObject({ found: true });
    expect(scene(one, "another order")).toMatchObject({ same: true });
    expect(scene(one, "agents act in the sandbox")).toMatchObject({ rollouts: 12, foretold: 12 });
  }, 180_000);
});
