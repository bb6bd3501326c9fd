import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { encodeWire, PolicyRevision } from "../../src/contract/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { decisionLine } from "../support/decision-lines.ts";
import { draftWire, FAMILY, makeRevision, weightsOf } from "../support/shelf.ts";

const revision = (n: number) => ({ id: `r${n}`, digest: weightsOf(`r${n}`) });
const REVISIONS = Array.from({ length: 9 }, (_, n) =>
  encodeWire(PolicyRevision, makeRevision(`r${n}`, { number: BigInt(n) }).record),
);
/** One rollout per source revision. All ended 200 ms after the fixed time of the tests' clock. */
const ROLLOUTS = [8, 6, 4, 1].map((n) =>
  draftWire(`from-r${n}`, { group: "g" }, { revision: revision(n), rewards: [0, 0, n] }),
);

describe("admission", () => {
  let cli: Cli;
  beforeEach(async () => {
    cli = new Cli();
    await cli.ok("keys new");
    await cli.ok("init");
    await cli.ok(`artifact import ${cli.file("all.jsonl", lines(...REVISIONS, ...ROLLOUTS))}`);
  });
  const assemble = async (words = "") => {
    const [{ batch, ledger }] = await cli.json(`batch assemble --target r8 --level token ${words}`.trim());
    const reasons = Object.fromEntries(
      ledger.reasons.map(({ reason, artifacts }: { reason: string; artifacts: number }) => [
        reason,
        artifacts,
      ]),
    );
    return { rows: batch.totals.rows, reasons };
  };

  it("against a target that is older names the target that accepts all, and judges the rollouts of one revision", async () => {
    const { out, err } = await cli.run("artifact admit --target r1 --drift 9/9");
    expect(out).toMatch(/from-r8 .*its policy r8 is 7 revisions newer than the target$/m);
    expect(err).toContain("  rollbook artifact admit --target r8 --drift 9/9  # 3 more\n");
    expect((await cli.run("artifact admit --target r8 --drift 9/9")).err).toBe("4 judgements: 4 accepted\n");
    expect(await cli.json("artifact admit --target r4 --chosen-by r4")).toMatchObject([
      { rolloutId: "from-r4", disposition: "accepted" },
    ]);
    expect((await cli.run("artifact admit --target r4 --chosen-by r2")).err).toMatch(
      /^nothing to judge: r2 chose in none/,
    );
    const { code, err: idle } = await cli.run("artifact admit --validate --chosen-by r4");
    expect([code, idle]).toEqual([2, expect.stringContaining("--chosen-by has no effect on --validate")]);
  });

  it("by budgets at assembly: what is stale or quarantined is in the ledger, now and in later batches", async () => {
    expect(await assemble("--freshness none")).toEqual({ rows: 4, reasons: {} });
    const judged = { rows: 2, reasons: { quarantined: 1, stale: 1 } };
    // The default budget of a token batch gives the same result, and seals no verdict.
    expect(await assemble()).toEqual(judged);
    expect(await assemble("--freshness none")).toEqual({ rows: 4, reasons: {} });
    expect(await assemble("--freshness default")).toEqual(judged);
    expect(await assemble("--drift 7/7")).toEqual({ rows: 4, reasons: {} });
    // A budget applies to one batch. A sealed verdict applies to all batches.
    await cli.ok("artifact admit --target r8 --freshness default");
    expect(await assemble("--freshness none")).toEqual(judged);
    expect(await cli.ok("verify --require-trusted")).toContain("4");
  });

  it("releases what was quarantined, by name and with a reason, for as long as nothing new is found", async () => {
    await cli.ok("artifact admit --target r8 --freshness default");
    expect(await cli.ok(["artifact", "release", "from-r4", "--reason", "a rare task"])).toContain("released");
    expect(await assemble()).toEqual({ rows: 3, reasons: { stale: 1 } });
    expect(await assemble("--freshness default")).toEqual({ rows: 3, reasons: { stale: 1 } });
    // A released rollout stays admitted under other budgets. A new verdict quarantines it again.
    expect(await assemble("--drift 0/4")).toEqual({ rows: 2, reasons: { quarantined: 1, stale: 1 } });
    await cli.ok("artifact admit from-r4 --target r8 --drift 0/4");
    expect(await assemble()).toEqual({ rows: 2, reasons: { quarantined: 1, stale: 1 } });
    expect(await cli.ok("artifact show from-r4")).toContain("release      by owner: a rare task");
    for (const name of ["from-r8", "from-r1"]) {
      const refused = await cli.run(["artifact", "release", name, "--reason", "why not"]);
      expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("not-quarantined")]);
    }
  });

  it("names the failure that quarantines a task, which no release cancels", async () => {
    const ending = { kind: "failed", owner: "task", message: "no answer" };
    const { task } = draftWire("x") as { task: object };
    const other = draftWire("other", { task: { ...task, id: "other-task" } });
    await cli.ok("artifact import -", lines(draftWire("broken", { ending }), other));
    const why = "its task made broken fail. No release changes that.";
    expect(await cli.run(["artifact", "release", "from-r8", "--reason", "test"])).toMatchObject({
      code: 1,
      err: expect.stringContaining(`from-r8 is left out as task-quarantined: ${why}`),
    });
    for (const name of ["broken", "other"]) {
      const refused = await cli.run(["artifact", "release", name, "--reason", "test"]);
      expect(refused.err).toContain("there is nothing to release");
      expect(await cli.ok(`artifact show ${name}`)).not.toContain("task-quarantined");
    }
  });

  it("says of each rollout why, and nothing twice", async () => {
    const admit = () => cli.json("artifact admit --target r8 --rollout-age 30/60");
    const first = await admit();
    expect(first.map(({ rolloutId, disposition, added }) => [rolloutId, disposition, added])).toEqual([
      ["from-r1", "rejected", true],
      ["from-r4", "quarantined", true],
      ["from-r6", "accepted", true],
      ["from-r8", "accepted", true],
    ]);
    expect(first[1].message).toBe("quarantined; drift 4 (accepts 3, quarantines 5)");
    expect((await admit()).map(({ added }) => added)).toEqual([false, false, false, false]);
    expect(await cli.ok("artifact show from-r4")).toMatch(/age check +quarantined: drift 4/);
    const { out, err } = await cli.run("artifact admit --target r8 --rollout-age 30/60");
    expect(out).toMatch(/from-r4 +freshness +quarantined +its policy r4 is 4 revisions behind the target/);
    expect(out).not.toContain("from-r6");
    expect(err).toContain("4 judgements, 4 of them as before: 1 rejected, 1 quarantined, 2 accepted\n");
  });

  it("shows verdicts in order of time, and which ones later verdicts replaced", async () => {
    const targets = ["r8", "r1", "r7", "r2", "r6"];
    for (const target of targets)
      await cli.ok(`artifact admit from-r4 --target ${target} --freshness default`);
    const shown = (await cli.ok("artifact show from-r4")).match(/^ {2}verdict .*$/gm)!;
    const said = shown.map((line) => line.match(/verdict +(\w+) by freshness for the family \S+, at/)?.[1]);
    expect(said).toEqual(["quarantined", "rejected", "accepted", "rejected", "accepted"]);
    expect(shown.map((line) => line.endsWith(", replaced by a later one"))).toEqual([
      ...[true, true, true, true, false],
    ]);
  });

  it("says below the ledger that an earlier verdict made a stream stale, and how to judge it again", async () => {
    const note =
      "stale: by an earlier verdict; `rollbook artifact show ID` says why. If its target was another,";
    await cli.ok("artifact admit from-r6 --target r4 --freshness default");
    const words = "batch assemble --target r8 --level token";
    expect(await cli.ok(`${words} --freshness none`)).toContain(
      `${note} \`rollbook artifact admit --target r8\` judges them again`,
    );
    await cli.ok("artifact admit from-r6 --target r8 --freshness default");
    // Here the limits of the batch exclude a stream, and no verdict does.
    expect(await cli.ok(words)).toMatch(/^ +stale +1 /m);
    expect(await cli.ok(words)).not.toContain(note);
  });

  it("lets clocks disagree by a minute, by as much as is told, and not at all under the psionic profile", async () => {
    const outcome = async (words: string) =>
      (await cli.json(`artifact admit from-r8 --target r8 ${words}`))[0].message;
    expect(await outcome("--freshness default")).toBe("accepted-exact");
    expect(await outcome("--clock-skew 0.1")).toBe(
      "discarded; clock-skew-ms 200 (accepts 100, quarantines 100)",
    );
    expect(await outcome("--freshness psionic")).toBe(
      "discarded; clock-skew-ms 200 (accepts 0, quarantines 0)",
    );
  });

  it("of one family says nothing about another", async () => {
    const other = encodeWire(
      PolicyRevision,
      makeRevision("o1", { family: "other" as never, number: 1n }).record,
    );
    const mixed = draftWire("mixed", {
      streams: [
        { ...(draftWire("x").streams as object[])[0], revision: revision(1) },
        {
          ...(draftWire("x").streams as object[])[0],
          family: "other",
          revision: { id: "o1", digest: weightsOf("o1") },
        },
      ],
    });
    await cli.ok(`artifact import ${cli.file("more.jsonl", lines(other, mixed))}`);
    expect(await assemble(`--family ${FAMILY} --freshness default`)).toMatchObject({ reasons: { stale: 2 } });
    const [{ batch }] = await cli.json("batch assemble --target o1 --family other --level token");
    expect(batch.totals.rows).toBe(1);
  });

  it("validates: without a proof of execution a rollout teaches nothing; what is judged is not judged again", async () => {
    const verdicts = await cli.json("artifact admit --validate");
    expect(verdicts.map(({ validator, message }) => [validator, message])).toEqual(
      Array(4).fill(["rollbook", "rejected: execution-proof-missing"]),
    );
    expect(await cli.json("artifact admit --validate")).toEqual([]);
    expect((await cli.run("artifact admit --validate")).err).toBe(
      "nothing to judge: the book holds no rollout, or the validator named rollbook (--validator) has judged all of them before. To judge a rollout again, give its id\n",
    );
    const refused = await cli.run("batch assemble --target r8 --level token");
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("rejected 4")]);
  });

  it("judges what a launch uploads: the receipt says how, and batches obey", async () => {
    const stream = (n: number) => (draftWire("x", {}, { revision: revision(n) }).streams as object[])[0];
    const agent = cli.file(
      "a.mjs",
      `export default ({ n }) => ({ reward: 1, streams: [n === 8 ? ${JSON.stringify(stream(8))} : ${JSON.stringify(stream(1))}] });`,
    );
    const tasks = cli.file("t.jsonl", lines({ n: 8 }, { n: 1 }));
    const results = await cli.json(`launch --tasks ${tasks} --agent ${agent} --target r8`);
    const outcomes = results.slice(0, 2).map(({ row, receipt }) => [row, receipt.outcome]);
    expect(outcomes.sort()).toEqual([
      [0, "accepted-exact"],
      [1, "discarded"],
    ]);
    expect(await assemble("--freshness none")).toEqual({ rows: 5, reasons: { stale: 1 } });
  });

  it.each([
    ["artifact admit", "nothing to judge", 2],
    ["artifact admit --target r8 --drift 5/3", "two numbers", 2],
    ["artifact admit --target none", "not-found", 1],
    ["artifact admit --target r8 --freshness psionics", "psionic", 2],
  ])("%s is refused", async (words, message, status) => {
    const { code, err } = await cli.run(words);
    expect([code, err]).toEqual([status, expect.stringContaining(message)]);
  });
});

describe("an imported log", () => {
  let cli: Cli;
  const assemble = "batch assemble --level step --advantage none --json --target";
  beforeEach(async () => {
    cli = new Cli({ clock: systemClock });
    await cli.ok("keys new");
    await cli.ok("init");
    const rows = Array.from({ length: 40 }, (_, n) => decisionLine(`d-${n}`));
    await cli.ok(`data import ${cli.file("log.jsonl", lines(...rows))}`);
    for (const [id, parent] of [
      ["r3", ""],
      ["r4", "--parent logged"],
    ])
      await cli.ok(`train linucb --id ${id} --out ${join(cli.folder, id!)} ${parent}`.trim());
  });

  it("whose target is not comparable gets the command that accepts it", async () => {
    const { err } = await cli.run("artifact admit --target r3");
    expect(err).toMatch(/accepts more of them:\n {2}rollbook artifact admit --target logged {2}# 40 more$/m);
    await cli.ok("artifact admit --target logged");
    expect(await cli.json(`${assemble} r3`)).toMatchObject([{ batch: { totals: { rows: 40 } } }]);
  });

  it("rejected as of unknown distance, is back after the advice of the error", async () => {
    const { code, err } = await cli.run(`${assemble} r3 --rollout-age 1/2`);
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/admit --target REVISION.*`logged`.*without --rollout-age/),
    ]);
    await cli.ok("artifact admit --target logged");
    expect(await cli.json(`${assemble} r3`)).toMatchObject([{ batch: { totals: { rows: 40 } } }]);
  });

  it("shows the drift that the limits of the batch measure along the parents", async () => {
    expect(await cli.ok(`${assemble} r4 --drift 1/1`.replace("--json ", ""))).toMatch(/^ +logged +1 +40 /m);
    expect(await cli.ok(`${assemble} r3`.replace("--json ", ""))).toMatch(/^ +logged +\? +40 /m);
  });

  it("passes no limit of the policy age, because its age is unknown", async () => {
    const [{ rolloutId }] = await cli.json("artifact ls");
    expect(await cli.json(`artifact admit ${rolloutId} --target r4 --policy-age 0/0`)).toMatchObject([
      { disposition: "rejected", why: expect.stringContaining("the age of its policy logged is unknown") },
    ]);
    await cli.ok("artifact admit --target r4");
    expect(await cli.run(`${assemble} r4 --policy-age 0/9`)).toMatchObject({
      code: 1,
      err: expect.stringContaining("Excluded: stale 40. They are too far"),
    });
  });

  it("rejected by a validation for its missing proof, is back after one that needs none", async () => {
    await cli.ok("artifact admit --validate");
    const { code, err } = await cli.run(`${assemble} r4`);
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("`rollbook artifact admit --validate --no-proof`"),
    ]);
    expect(await cli.json("artifact admit --validate")).toEqual([]);
    expect(await cli.json("artifact admit --validate --no-proof")).toHaveLength(40);
    expect(await cli.json("artifact admit --validate --no-proof")).toEqual([]);
    expect(await cli.json(`${assemble} r4`)).toMatchObject([{ batch: { totals: { rows: 40 } } }]);
    await cli.ok("verify");
  });
});
