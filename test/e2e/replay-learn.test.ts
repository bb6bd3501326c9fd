/** The same rollouts through the book, through an exported file and through a replay store. Every number is worked out
 *  by hand.
 *
 *  The router offers `small` (probability 3/4), `large` (1/4) and `huge`, which is over budget. Decisions come in
 *  periods of eight:
 *      draw    small small small large small small small large
 *      reward    1     1     0     1     1     1     1     0        small 6 with 5, large 2 with 1
 *  Training: 12 chains of one, two and three decisions (24 decisions, three periods: small 18 with 15, large 6 with 3).
 *  Three more rollouts:
 *      late        two draws of large without rewards; feedback of 2 for the rollout counts at the last draw: 0 and 2
 *      partly      two draws of small, one reward missing: unlabelled as a whole
 *      infra       a draw of small with reward 1, failed by the infrastructure: not admitted
 *  Evaluation: 80 chains of two decisions (160, twenty periods: small 120 with 100, large 40 with 20), appended to the
 *  store. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCheckpoint } from "../../src/policy/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { draftWire, makeRevision, stepWire } from "../support/shelf.ts";

/** Arms by single decisions (`--discount 0`), as the table above counts them. */
const ARMS = { huge: { count: 0, sum: 0 }, large: { count: 8, sum: 5 }, small: { count: 18, sum: 15 } };
/** Arms by returns: 1 | 1 0 | 3 2 1 | 1 | 1 1 | 2 1 1 | 1 | 2 1 | 2 2 1 | 0 | 2 1 | 2 1 0. Every fourth decision is of
 *  large; `late` adds 2 and 2. */
const RETURNS = { huge: { count: 0, sum: 0 }, large: { count: 8, sum: 13 }, small: { count: 18, sum: 21 } };
/** 24 decisions and the two of `late`. The two decisions of `partly` are unlabelled. */
const LABELLED = 26;
const UNLABELLED = 2;
/** Always small: weights 4/3 on 120 of 160. IPS = (100 · 4/3) / 160, SNIPS = 100 / 120. */
const ALWAYS_SMALL = 5 / 6;
/** Uniform over small and large: weights 2/3 and 2, which sum to 160. IPS = (100 · 2/3 + 20 · 2) / 160. */
const ANY = 2 / 3;
/** 120 solved of 160. */
const BEHAVIOUR = 3 / 4;

const removals: (() => void)[] = [];
let cli: Cli;
let store: string;
let file: string;
const place = (name: string) => join(cli.folder, name);

/** The `n`-th decision of the pattern. */
const decision = (n: number) => ({
  chosen: n % 4 === 3 ? 1 : 0,
  reward: [1, 1, 0, 1, 1, 1, 1, 0][n % 8]!,
});

function rollout(name: string, decisions: readonly object[], over: object = {}): object {
  const [step] = (stepWire() as { steps: object[] }).steps;
  const steps = decisions.map((each, turn) => ({ ...step, ...each, turn, context: [0.5] }));
  return draftWire(name, {
    ...{ task: { id: `task-${name}` }, group: `session-${name}`, streams: [stepWire({ steps })], ...over },
  });
}

function chains(name: string, count: number, lengthOf: (chain: number) => number): object[] {
  let next = 0;
  return Array.from({ length: count }, (_, i) => {
    const decisions = Array.from({ length: lengthOf(i) }, () => decision(next++));
    // Later chains began earlier, because the result must not depend on the order of times.
    const envelope = { worker: "worker-a", startedAtMs: 5000 - i, endedAtMs: 6000 };
    return rollout(`${name}-${String(i).padStart(2, "0")}`, decisions, { envelope });
  });
}

const FEEDBACK = "--family router --feedback outcome";
const RETURN_UCB = "--exploration 0 --split all";
const UCB = `${RETURN_UCB} --discount 0`;

beforeAll(async () => {
  cli = new Cli({ whenDone: (remove) => removals.push(remove) });
  [store, file] = [place("store"), place("rows.jsonl")];
  await cli.ok("init");
  const revision = makeRevision("router-r1", { family: "router" as never });
  await cli.ok(["artifact", "import", cli.file("r.jsonl", revision.bytes)]);
  const [small, large] = [
    { chosen: 0, reward: 1 },
    { chosen: 1, reward: null },
  ];
  const first = [
    ...chains("learn", 12, (i) => (i % 3) + 1),
    rollout("late", [large, large]),
    rollout("partly", [small, { ...small, reward: null }]),
    rollout("infra", [small], { ending: { kind: "failed", owner: "infrastructure", message: "disk" } }),
  ];
  await cli.ok("artifact import --no-sign -", lines(...first));
  await cli.ok("feedback late --name outcome --value 2");
  await cli.ok(`replay write ${store} ${FEEDBACK}`);
  await cli.ok(`data export --out ${file} ${FEEDBACK}`);
  await cli.ok(`train ucb ${UCB} ${FEEDBACK} --out ${place("by-book")} --id from-book`);
  await cli.ok(`train ucb ${UCB} --data ${file} --out ${place("by-file")} --id from-file`);
}, 60_000);
afterAll(() => {
  for (const remove of removals) remove();
});

function armsIn(folder: string): object {
  const { arms, tensors } = readCheckpoint(place(folder)).model;
  return Object.fromEntries(
    arms.map((arm, i) => [
      arm,
      { count: Number(tensors.counts!.data[i]), sum: Number(tensors.sums!.data[i]) },
    ]),
  );
}

describe("training from a replay store", () => {
  beforeAll(async () => {
    await cli.ok(`train ucb ${UCB} --replay ${store} --out ${place("by-replay")} --id from-replay`);
  });

  it.each(["by-book", "by-file", "by-replay"])("counts each arm as every other way does: %s", (folder) => {
    expect(armsIn(folder)).toEqual(ARMS);
  });

  it.each([
    ["book", FEEDBACK],
    ["file", () => `--data ${file}`],
    ["replay", () => `--replay ${store}`],
  ])("learns from returns unless told, as every other way does: %s", async (name, source) => {
    const words = typeof source === "string" ? source : source();
    await cli.ok(`train ucb ${RETURN_UCB} ${words} --out ${place(`return-${name}`)} --id return-${name}`);
    expect(armsIn(`return-${name}`)).toEqual(RETURNS);
  });

  it("names the store in the lineage by the digest of its manifest, and the revision verifies in a book", async () => {
    const [{ manifest }] = await cli.json(`replay info ${store}`);
    const { revision } = readCheckpoint(place("by-replay"));
    expect(revision.record.training).toMatchObject({
      batches: [],
      datasets: [{ kind: "replay-store", digest: manifest.digest }],
    });
    expect(await cli.ok(`replay info ${store}`)).toContain(manifest.digest);
    const other = new Cli();
    await other.ok("init");
    await other.ok(`artifact import ${join(place("by-replay"), "revision.json")}`);
    expect(await other.run("verify from-replay")).toMatchObject({ code: 0 });
    expect(await other.run("verify")).toMatchObject({ code: 0 });
  });

  it("is open to every trainer, and a linear one sees the numbered features", async () => {
    for (const words of ["linucb", "thompson", "thompson --form linear", "bc"]) {
      const out = place(words.replaceAll(" ", ""));
      // Beta posteriors need rewards in 0 … 1. The rewards of `late` are outside this range.
      const only = words === "thompson" ? " --session session-learn-02" : "";
      const [trained] = await cli.json(
        `train ${words}${only} --discount 0 --split all --replay ${store} --out ${out} --id r`,
      );
      expect(trained).toMatchObject({ datasets: [{ kind: "replay-store" }], sealed: false });
    }
    for (const folder of ["linucb", "bc"])
      expect(readCheckpoint(place(folder)).model.spec.fields).toEqual([{ name: "f0", kind: "number" }]);
  });

  it("analyses the rewards that the store was written with", async () => {
    const [report] = await cli.json(`reward analyze --replay ${store}`);
    expect(report).toMatchObject({ rows: LABELLED, unlabelled: UNLABELLED });
    // Rewards: 15 of small, 3 of large, 2 of `late`.
    expect(report.all.mean).toBeCloseTo(20 / LABELLED, 12);
  });
});

describe("judging by a replay store", () => {
  interface Report {
    readonly data: { rows: number; leftOut: { train: number } };
    readonly contenders: readonly {
      name: string;
      values: { reward: { value: number } };
      panels: { reward?: { rows: readonly { estimator: string; value: number }[] } };
    }[];
  }
  const estimate = ({ contenders }: Report, name: string, estimator: string) =>
    contenders
      .find((each) => each.name === name)!
      .panels.reward!.rows.find((row) => row.estimator === estimator)!.value;
  let later: string;

  beforeAll(async () => {
    later = place("later.jsonl");
    await cli.ok("artifact import --no-sign -", lines(...chains("judge", 80, () => 2)));
    expect(await cli.ok(`replay append ${store} ${FEEDBACK}`)).toContain("80 chains");
    await cli.ok(`data export --out ${later} ${FEEDBACK}`);
  }, 60_000);

  it("gives the estimates that the exported rows give, chains of several steps included", async () => {
    const evaluate = async (source: string) =>
      (await cli.json(`evaluate --checkpoint ${place("by-file")} ${source}`))[0] as Report;
    const [byFile, byStore] = [await evaluate(`--data ${later}`), await evaluate(`--replay ${store}`)];
    for (const report of [byFile, byStore]) {
      expect(report.data).toMatchObject({ rows: 160, leftOut: { train: LABELLED + UNLABELLED } });
      for (const estimator of ["IPS", "SNIPS"]) {
        expect(estimate(report, "learned", estimator)).toBeCloseTo(ALWAYS_SMALL, 12);
        expect(estimate(report, "random", estimator)).toBeCloseTo(ANY, 12);
      }
      const behaviour = report.contenders.find(({ name }) => name === "behaviour")!;
      expect(behaviour.values.reward.value).toBeCloseTo(BEHAVIOUR, 12);
    }
  });

  it("lets a policy through the gate, and seals the verdict in the book", async () => {
    const words = `gate --candidate ${place("by-replay")} --baseline behaviour --epsilon-quality 0.05 --quality-only`;
    const [verdict] = await cli.json(`${words} --replay ${store}`);
    expect(verdict).toMatchObject({ outcome: "pass", sealed: true, data: { rows: 160 } });
    expect(verdict.candidates[0].checks[0].baseline).toBeCloseTo(BEHAVIOUR, 12);
    const refused = await cli.run(`${words} --replay ${store} --method confidence-sequence`);
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("keeps no times")]);
  });

  it("is refused to a policy that decides by prompts, which the store does not keep", async () => {
    const bc = place("bc-of-file");
    await cli.ok(`train bc --split all --data ${file} --out ${bc} --id by-prompt`);
    for (const words of [
      `evaluate --checkpoint ${bc}`,
      `gate --candidate ${place("by-file")} --baseline ${bc} --quality-only`,
    ]) {
      const { code, err } = await cli.run(`${words} --replay ${store}`);
      expect([code, err]).toEqual([1, expect.stringContaining("replay-cannot-judge")]);
    }
  });
});

describe("what a replay store cannot be asked", () => {
  it.each([
    ["--data x.jsonl", "--data and --replay both name the decisions"],
    ["--feedback outcome", "its rewards are fixed when it is written"],
    ["--since 2026-01-01", "a replay store keeps none"],
    ["--until 2026-01-01", "a replay store keeps none"],
  ])("%s is refused as wrong usage", async (flag, why) => {
    for (const words of [
      `train ucb --out ${place("none")} --id none`,
      `evaluate --checkpoint ${place("by-file")}`,
      `gate --candidate ${place("by-file")}`,
      "reward analyze",
    ]) {
      const { code, err } = await cli.run(`${words} --replay ${store} ${flag}`);
      expect([words, code, err]).toEqual([words, 2, expect.stringContaining(why)]);
    }
  });

  it("to teach where no decision has an outcome: nothing is written", async () => {
    const out = place("untaught");
    const { code, err } = await cli.run(
      `train cql --steps 50 --hidden 8 --replay ${store} --session session-partly --split all --out ${out} --id none`,
    );
    expect([code, err]).toEqual([1, expect.stringMatching(/no decisions with an outcome/)]);
    expect([existsSync(out), existsSync(`${out}.training`)]).toEqual([false, false]);
  });

  it("to judge a network by another feature spec than it was trained with", async () => {
    const out = place("cql");
    await cli.ok(`train cql --steps 50 --hidden 8 --replay ${store} --split all --out ${out} --id by-cql`);
    const { spec } = readCheckpoint(out).model;
    const other = cli.file("other.json", JSON.stringify({ ...spec, wordBuckets: 64 }));
    const { code, err } = await cli.run(`evaluate --checkpoint ${out} --replay ${store} --features ${other}`);
    expect([code, err]).toEqual([1, expect.stringMatching(/feature spec|features/)]);
  });

  it("to be read where a chunk was changed", async () => {
    const plain = place("plain.zarr");
    await cli.ok(`replay compact ${store} ${plain}`);
    const chunk = join(plain, "steps", "reward", "c", "0");
    const bytes = readFileSync(chunk);
    bytes[0]! ^= 1;
    writeFileSync(chunk, bytes);
    const { code, err } = await cli.run(`train ucb --replay ${plain} --out ${place("none")} --id none`);
    expect([code, err]).toEqual([1, expect.stringContaining("steps/reward")]);
  });
});
