import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { demo } from "../../bench/support/demo-runs.ts";
import { systemClock } from "../../src/base/clock.ts";
import { playTour } from "../../src/cli/commands/demo/tour.ts";
import { BOOK_SCENES, runTour } from "../../src/loop/tour/index.ts";
import type { DemoSummary } from "../../src/view/runs/demo-summary.ts";
import { Cli } from "../support/cli.ts";
import { demoBook } from "../support/demo-book.ts";
import { DEMO_OUTPUT, pathTypes } from "../support/demo-output.ts";

const SIZE = "--windows 1 --rollouts 40";

describe("rollbook demo", () => {
  it("runs every stage of the loop on simulated tasks, shows every refusal, and after a kill ends with the same digests", async () => {
    const cli = new Cli({ clock: systemClock });
    const out = join(cli.folder, "demo");
    const [summary] = (await cli.json(`demo --out ${out} ${SIZE}`)) as [DemoSummary];
    expect(summary).toMatchObject({
      ...{ seed: 1, rollouts: 40, tasks: 20, gate: { alpha: 0.05, epsilonQuality: 0, epsilonCost: null } },
      ...{ pack: { verified: true }, replay: { valid: true, chains: 40 } },
    });
    // docs/reference/outputs.md shows the recorded output. The summary has the same keys, and every value has the same type.
    expect(Object.keys(summary).sort()).toEqual(Object.keys(DEMO_OUTPUT).sort());
    const recorded = pathTypes(JSON.parse(JSON.stringify(DEMO_OUTPUT)));
    expect([...pathTypes(JSON.parse(JSON.stringify(summary)))].filter((each) => !recorded.has(each))).toEqual(
      [],
    );
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
    const next = `Print its demo again with \`rollbook demo --resume --out ${out}\``;
    expect(taken).toMatchObject({ code: 1, err: expect.stringContaining(next) });
    // `--resume` shows an ended demo again without a new run.
    rmSync(join(out, "report.html"));
    const report = join(cli.folder, "demo.html");
    const again = await cli.ok(`demo --resume --out ${out} --report ${report}`);
    expect(again).toContain("known optimum");
    expect(again).toMatch(/^in window 1 the gate refused .*\bbc\b/m);
    expect(again).toContain(summary.digest.slice(7, 19));
    expect(readFileSync(join(out, "report.html"), "utf8")).toContain("<svg");
    expect(readFileSync(report)).toEqual(readFileSync(join(out, "report.html")));
    const kept = await cli.run(`demo --resume --out ${out} --report ${report}`);
    expect(kept).toMatchObject({ code: 1, err: expect.stringContaining("Name another file with --report") });
    await cli.ok(`pack verify ${join(out, "pack")}`);

    const killed = join(cli.folder, "killed");
    const words = [...SIZE.split(" "), "--out", killed];
    // The kill comes while the demo collects. `npm run campaign -- demo` kills full demos at random moments.
    const cut = await demo(words, { line: 3, delayMs: 200 }, { ...process.env, ROLLBOOK_HOME: cli.home });
    expect([cut.summary, cut.said]).toEqual([undefined, expect.stringContaining("collecting, 40 rollouts")]);
    const [resumed] = (await cli.json(`demo --resume --out ${killed}`)) as [DemoSummary];
    expect([resumed.digest, resumed.pack.verified]).toEqual([summary.digest, true]);
  }, 240_000);

  it("says what its flags exclude", async () => {
    const cli = new Cli();
    const out = join(cli.folder, "d");
    for (const [words, said] of [
      [`--out ${out} --rollouts 7`, "Give an even number"],
      [`--resume --out ${out}`, "holds no demo"],
      [`--resume --seed 2 --out ${out}`, "with its own seed"],
      [`--tour --windows 2`, "--tour takes no"],
      [`--tour --report r.html`, "--tour takes no"],
      [`--report ${out}/none/r.html`, "does not exist. Create it"],
      [`--book ${out}`, "no effect without --tour"],
    ] as const) {
      const { code, err } = await cli.run(`demo ${words}`);
      expect([code > 0, err]).toEqual([true, expect.stringContaining(said)]);
    }
    expect(existsSync(out)).toBe(false);
  });
});

describe("rollbook demo --tour", () => {
  it("shows every scene, and leaves a book that verifies", async () => {
    const cli = new Cli();
    const { code, out } = await cli.run(["demo", "--tour", "--book", cli.book]);
    expect(code).toBe(0);
    expect([...out.matchAll(/^\d+\. (.*)$/gm)]).toHaveLength(13);
    expect([...out.matchAll(/^ {3}✓ /gm)]).toHaveLength(13);
    expect(out).not.toContain("✗");
    expect(await cli.ok("verify")).toContain("self-consistent: yes");
    expect(await cli.run(["demo", "--tour", "--book", cli.book])).toMatchObject({
      code: 1,
      err: expect.stringContaining("book-exists"),
    });
  }, 180_000);

  it("writes the same digests to its book each time, and prints them as JSON", async () => {
    const cli = await demoBook();
    const printed: string[] = [];
    const io = { out: (data: unknown) => printed.push(String(data)), err: () => {} };
    await playTour(io, { seed: 1n, json: true, scenes: BOOK_SCENES });
    const scenes = printed.map((line) => JSON.parse(line));
    const scene = (name: string) => scenes.find((each) => each.scene === name);
    expect(scene("tamper")).toMatchObject({ found: true });
    expect(scene("another order")).toMatchObject({ same: true });
    const kept = (await cli.json("artifact ls")).map(({ content }) => content);
    expect(kept.sort()).toEqual(scene("rollouts").rollouts.sort());
    for (const digest of scene("batches").batches) await cli.ok(`batch show ${digest}`);
  });

  it("has other rollouts under another seed", async () => {
    const cli = new Cli();
    const played = async (seed: bigint) => {
      const [root, scratch] = [join(cli.folder, `${seed}`), join(cli.folder, `${seed}-scratch`)];
      const data: unknown[] = [];
      const onScene = (scene: { data: unknown }) => data.push(scene.data);
      await runTour({ root, scratch, seed, scenes: BOOK_SCENES.slice(0, 2), onScene });
      return data;
    };
    const [[revisions, rollouts], [sameRevisions, otherRollouts]] = [await played(1n), await played(2n)];
    expect(revisions).toEqual(sameRevisions);
    expect(rollouts).not.toEqual(otherRollouts);
  });
});
