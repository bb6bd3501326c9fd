/** One book, from the gateway's calls to the gate's verdict, with every way in which a rollout can go wrong.
 *  Every number below is worked out by hand, from the plans alone. The code under test computes none of them.
 *
 *  The router draws `large` with probability 3/4 and `small` with 1/4, and logs both.
 *
 *  Window 1, for training: ten periods of eight rollouts `w1-00` … `w1-79`. Positions 0 … 5 of a period drew `large`;
 *  the first five of them are solved. Positions 6 and 7 drew `small`; position 6 is solved.
 *      large 60 rollouts, 50 solved      small 20 rollouts, 10 solved      80 in all, rewards 60
 *  Eleven more, each with its result at both levels:
 *      rollout        draw   reward  at the step level       at the token level
 *      infra          large  1       failed-infrastructure   failed-infrastructure
 *      provider       large  1       failed-provider         failed-provider
 *      agent          large  0       in: its own failure     in
 *      broken-failed  large  0       failed-task             failed-task
 *      broken-good    large  1       task-quarantined        task-quarantined
 *      stale          large  1       in: off-policy          stale: writer-r1 is 8 behind writer-r9, budget 3/5
 *      quarantined    large  1       quarantined             quarantined: writer-r5 is 4 behind
 *      released       large  1       in: released            quarantined: writer-r5; only the router's is released
 *      unlabelled     small  –       unlabelled              no tokens
 *      late           small  1 + 2   in, with reward 3       no tokens
 *      rejected       large  1       rejected                rejected
 *
 *  Window 2, for evaluation: twelve such periods, `w2-00` … `w2-95` (large 72, 60 solved; small 24, 12 solved), one
 *  rollout that the infrastructure failed, and one without a grade. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openReplay, readDense } from "../../src/keep/replay/index.ts";
import { policyOf, readCheckpoint } from "../../src/policy/index.ts";
import { Cli, lines, type Outcome } from "../support/cli.ts";
import {
  collectRollouts,
  numberedRevision,
  OUTCOME,
  type PlannedRollout,
} from "../support/routed-rollouts.ts";

/** The 80 rollouts of the pattern and the eleven others. */
const COLLECTED = 91;
/** The 80 of the pattern, agent, stale, released, late. */
const ADMITTED = 84;
/** Sum over the admitted rollouts: 60 + 0 + 1 + 1 + 3. */
const REWARDS = 65;
/** large: 60, agent, stale, released; 50 + 0 + 1 + 1. small: 20, late; 10 + 3. */
const ARMS = { large: { count: 63, sum: 52 }, small: { count: 21, sum: 13 } };
/** Rollouts exported and written to a replay store: the admitted ones and `unlabelled`, whose reward is missing. */
const WITH_UNLABELLED = 85;
const STEP_REASONS = {
  "failed-infrastructure": 1,
  "failed-provider": 1,
  "failed-task": 1,
  quarantined: 1,
  rejected: 1,
  "task-quarantined": 1,
  unlabelled: 1,
};
/** 22 rollouts have no tokens: 20 of the pattern, unlabelled and late. They have no stream at the token level. */
const TOKEN_REASONS = {
  "failed-infrastructure": 1,
  "failed-provider": 1,
  "failed-task": 1,
  "other-level": 22,
  quarantined: 2,
  rejected: 1,
  stale: 1,
  "task-quarantined": 1,
};
/** The 60 of the pattern and agent: 91 − 22 − 8 = 61. Rewards 50 + 0. Two sampled tokens each. */
const TOKEN_BATCH = { rows: 61, samples: 122, rewardSum: 50 };
/** By default 45 of the admitted tasks are in the train split: the first 32 bits of
 *  sha256("rollbook.split.v1\0rollbook\0" + task) are below 0.6 · 2³². Counted with Python's hashlib over the table
 *  above. */
const DEFAULT_SPLIT = {
  rows: 45,
  heldBack: 39,
  arms: { large: { count: 31, sum: 24 }, small: { count: 14, sum: 8 } },
};

const pattern = (name: string, periods: number): PlannedRollout[] =>
  Array.from({ length: 8 * periods }, (_, i): PlannedRollout => {
    const [id, at] = [`${name}-${String(i).padStart(2, "0")}`, i % 8];
    const outcome = [1, 1, 1, 1, 1, 0, 1, 0][at]!;
    // Rollouts of `small` get a score when they close. Rollouts of `large` get feedback afterwards, except the first,
    // which is scored.
    const graded = at > 5 || i === 0 ? { score: outcome } : { feedback: outcome };
    return { id, draw: at < 6 ? "large" : "small", ...graded };
  });
const failed = (owner: "agent" | "task" | "infrastructure") =>
  ({ kind: "failed", owner, message: "by the plan" }) as const;

const WINDOW_1: readonly PlannedRollout[] = [
  ...pattern("w1", 10),
  { id: "infra", draw: "large", feedback: 1, ending: failed("infrastructure") },
  { id: "provider", draw: "large", feedback: 1, upstream: "fails" },
  { id: "agent", draw: "large", feedback: 0, ending: failed("agent") },
  { id: "broken-failed", task: "broken", draw: "large", feedback: 0, ending: failed("task") },
  { id: "broken-good", task: "broken", draw: "large", feedback: 1 },
  { id: "unlabelled", draw: "small" },
  { id: "late", draw: "small" },
  { id: "rejected", draw: "large", feedback: 1, upstream: "overclaims" },
];
const IN_AT_STEP_LEVEL = [...pattern("w1", 10).map(({ id }) => id), "agent", "late", "released", "stale"];

/** The first rollout is graded later, in two halves: for the rollout and for its call. */
const WINDOW_2: readonly PlannedRollout[] = [
  { id: "w2-00", draw: "large" },
  ...pattern("w2", 12).slice(1),
  { id: "w2-infra", draw: "large", feedback: 1, ending: failed("infrastructure") },
  { id: "w2-unlabelled", draw: "small" },
];
/** Judged rows: large 72 with 60 solved, small 24 with 12 solved. */
const JUDGED = 96;
/** Value of the behaviour policy: 72 solved of 96. */
const BEHAVIOUR = 0.75;
/** Always large: weights 4/3 on 72 rows and 0 on 24, so their mean is 1 and 72 units are effective.
 *  IPS = (60 · 4/3) / 96, SNIPS = 60 / 72: both 5/6. */
const ALWAYS_LARGE = 5 / 6;
/** Uniform over both candidates: weights (1/2)/(3/4) = 2/3 and (1/2)/(1/4) = 2, which sum to 96. IPS = (60 · 2/3 + 12 ·
 *  2) / 96. */
const ANY = 2 / 3;

const FROM_BOOK = `--family router --feedback ${OUTCOME}`;
const removals: (() => void)[] = [];
let cli: Cli;
/** Outcome of each command of the walk, by name. */
const walk = new Map<string, Outcome>();
const place = (name: string) => join(cli.folder, name);

async function step(name: string, words: string): Promise<void> {
  walk.set(name, await cli.run(`${words} --json`));
}

beforeAll(async () => {
  cli = new Cli({ whenDone: (remove) => removals.push(remove) });
  await cli.ok("keys new");
  await cli.ok("init");
  const revisions = [
    ...[1, 6, 9].map((number) => numberedRevision("router", number)),
    ...[1, 5, 9].map((number) => numberedRevision("writer", number)),
  ];
  await cli.ok(`artifact import ${cli.file("revisions.jsonl", lines(...revisions))}`);
  await collectWindow1();
  await learn();
  await collectRollouts(cli.book, { router: 9, writer: 9 }, WINDOW_2);
  await cli.ok(`feedback w2-00 --name ${OUTCOME} --value 0.5`);
  await cli.ok(`feedback w2-00 --call 0 --name ${OUTCOME} --value 0.5`);
  await judge();
  await step("verify revision", "verify router-ucb");
  await step("verify book", "verify");
}, 120_000);
afterAll(() => {
  for (const remove of removals) remove();
});

async function collectWindow1(): Promise<void> {
  await collectRollouts(cli.book, { router: 1, writer: 1 }, [{ id: "stale", draw: "large", score: 1 }]);
  await collectRollouts(cli.book, { router: 6, writer: 5 }, [
    { id: "quarantined", draw: "large", feedback: 1 },
    { id: "released", draw: "large", feedback: 1 },
  ]);
  await collectRollouts(cli.book, { router: 9, writer: 9 }, WINDOW_1);
  await cli.ok(`feedback late --name ${OUTCOME} --value 1`);
  await cli.ok(`feedback late --call 0 --name ${OUTCOME} --value 2`);
  // Three revisions behind router-r9: quarantined, because the drift is over 0 and not over 5.
  await step("admit", "artifact admit quarantined released --target router-r9 --drift 0/5");
  await step("release", "artifact release released --reason checked");
  await step("validate", "artifact admit rejected --validate");
  await step("artifacts", "artifact ls");
}

async function learn(): Promise<void> {
  const cut = `--advantage none --feedback ${OUTCOME}`;
  await step("step batch", `batch assemble --level step --family router --target router-r9 ${cut}`);
  await step("token batch", `batch assemble --level token --family writer --target writer-r9 ${cut}`);
  await step("replay write", `replay write ${place("store")} ${FROM_BOOK}`);
  await step("replay validate", `replay validate ${place("store")}`);
  await step("replay info", `replay info ${place("store")}`);
  await step("export", `data export --out ${place("rows.jsonl")} ${FROM_BOOK}`);
  await step("rewards", `reward analyze ${FROM_BOOK}`);
  const succeeds = `--parent router-r9 ${FROM_BOOK}`;
  await step(
    "ucb",
    `train ucb --out ${place("ucb")} --id router-ucb --exploration 0 --split all ${succeeds}`,
  );
  await step("ucb split", `train ucb --out ${place("split")} --id router-ucb-split ${succeeds}`);
  await step("bc", `train bc --out ${place("bc")} --id router-bc --split all ${succeeds}`);
}

async function judge(): Promise<void> {
  await step("evaluate", `evaluate --checkpoint ${place("ucb")} ${FROM_BOOK}`);
  const quality = `--quality-only ${FROM_BOOK}`;
  await step(
    "gate ucb",
    `gate --candidate ${place("ucb")} --baseline behaviour --epsilon-quality 0.05 ${quality}`,
  );
  await step("gate bc", `gate --candidate ${place("bc")} --baseline static ${quality}`);
}

/** The JSON lines of a command of the walk; the command must have exited with `code`. */
function said<T>(name: string, code = 0): T[] {
  const outcome = walk.get(name)!;
  expect(outcome.code, `${name}: ${outcome.err}`).toBe(code);
  return outcome.out
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T);
}

interface ShownBatch {
  readonly digest: string;
  readonly batch: { readonly totals: { rows: number; samples: number; rewardSum: number } };
  readonly ledger: { readonly reasons: readonly { reason: string; artifacts: number }[] };
}

/** Number of whole rollouts by reason. Does not count further streams of a rollout that has a row. */
function reasonsOf({ ledger }: ShownBatch): Record<string, number> {
  const counted = ledger.reasons.filter(({ artifacts }) => artifacts > 0);
  return Object.fromEntries(counted.map(({ reason, artifacts }) => [reason, artifacts]));
}

interface ExportedRow {
  readonly decision_id: string;
  readonly reward: number | null;
  readonly propensity: number | null;
}

function exportedRows(): ExportedRow[] {
  return readFileSync(place("rows.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as ExportedRow);
}

const sum = (values: Iterable<number>) => [...values].reduce((total, each) => total + each, 0);
const rolloutOf = (decision: string) => decision.split("/")[0]!;

/** Counts and rewards of the arms of a trained UCB1 model. */
function armsIn(folder: string): Record<string, { count: number; sum: number }> {
  const { arms, tensors } = readCheckpoint(place(folder)).model;
  return Object.fromEntries(
    arms.map((arm, i) => [
      arm,
      { count: Number(tensors.counts!.data[i]), sum: Number(tensors.sums!.data[i]) },
    ]),
  );
}

function batchesOf(folder: string): readonly string[] {
  return readCheckpoint(place(folder)).revision.record.training!.batches;
}

describe("collected and admitted", () => {
  test("every rollout is sealed once, and every revision has its record", () => {
    expect(said("artifacts")).toHaveLength(COLLECTED);
    const [report] = said<{ unrecordedRevisions: string[] }>("verify book");
    expect(report!.unrecordedRevisions).toEqual([]);
  });

  test("verdicts quarantine two rollouts and reject one, and one is released", () => {
    const dispositions = (name: string) =>
      said<{ rolloutId: string; disposition: string }>(name).map((each) => [
        each.rolloutId,
        each.disposition,
      ]);
    expect(dispositions("admit")).toEqual([
      ["quarantined", "quarantined"],
      ["released", "quarantined"],
    ]);
    expect(said("release")).toHaveLength(1);
    expect(dispositions("validate")).toEqual([["rejected", "rejected"]]);
  });
});

describe("a batch", () => {
  test("of steps takes every admitted rollout, however old, and adds up late feedback", () => {
    const [batch] = said<ShownBatch>("step batch");
    expect(batch!.batch.totals).toMatchObject({ rows: ADMITTED, samples: ADMITTED, rewardSum: REWARDS });
    expect(reasonsOf(batch!)).toEqual(STEP_REASONS);
  });

  test("is shown as it was cut, and follows from its manifest", async () => {
    const [cut] = said<ShownBatch>("step batch");
    expect(await cli.json(`batch show ${cut!.digest}`)).toEqual([cut]);
    expect(await cli.run(`batch verify ${cut!.digest}`)).toMatchObject({ code: 0 });
  });

  test("of tokens leaves out what is behind the drift budget", () => {
    const { stale, quarantined } = reasonsOf(said<ShownBatch>("token batch")[0]!);
    expect({ stale, quarantined }).toEqual({ stale: 1, quarantined: 2 });
  });

  test("of tokens names in its ledger the budget that excluded rollouts", () => {
    const { ledger } = said<ShownBatch>("token batch")[0]!;
    expectBudgetNamed(ledger);
  });

  test("of tokens is rewarded by the scores of the rollout", () => {
    const { ledger } = said<ShownBatch>("token batch")[0]!;
    expect(ledger.reasons.map(({ reason }) => reason)).not.toContain("unlabelled");
  });

  test("of tokens has the rows, samples, rewards and losses that follow", () => {
    const [batch] = said<ShownBatch>("token batch");
    expect(reasonsOf(batch!)).toEqual(TOKEN_REASONS);
    expect(batch!.batch.totals).toMatchObject(TOKEN_BATCH);
  });

  test("can be exported, row by row", async () => {
    const rows = await exportBatch(said<ShownBatch>("step batch")[0]!.digest);
    expect(rows).toHaveLength(ADMITTED);
    expect(sum(rows.map(({ reward }) => reward))).toBe(REWARDS);
  });

  test("labels a rollout of two routed calls by its score", async () => {
    const other = new Cli();
    await other.ok("init");
    await other.ok(`artifact import ${other.file("r.jsonl", lines(numberedRevision("router", 9)))}`);
    const plan = { id: "two", draw: "small", calls: 2, score: 1 } as const;
    await collectRollouts(other.book, { router: 9, writer: 9 }, [plan]);
    const [cut] = (await other.json(
      "batch assemble --level step --family router --target router-r9 --advantage none",
    )) as ShownBatch[];
    expect(cut!.batch.totals).toMatchObject({ rows: 1, samples: 2, rewardSum: 1 });
  });
});

describe("a replay store", () => {
  test("holds the rollouts of the batch and the unlabelled one", async () => {
    expect(await rolloutsInStore()).toEqual([...IN_AT_STEP_LEVEL, "unlabelled"].sort());
    const [info] = said<{ manifest: { rows: object } }>("replay info");
    expect(info!.manifest.rows).toMatchObject({
      ...{ chains: WITH_UNLABELLED, steps: WITH_UNLABELLED, q_h: WITH_UNLABELLED },
      candidates: 2 * WITH_UNLABELLED,
    });
  });

  test("is valid", () => {
    expect(said("replay validate")).toMatchObject([{ valid: true }]);
  });

  test("has the rewards that were recorded, without --returns", async () => {
    const rewards = await denseRewards();
    expect(rewards.filter(Number.isNaN).length).toBeLessThan(rewards.length);
  });

  test("has the rewards of the batch, and one missing", async () => {
    const rewards = await denseRewards();
    const known = rewards.filter((reward) => !Number.isNaN(reward));
    expect([rewards.length, known.length, sum(known)]).toEqual([WITH_UNLABELLED, ADMITTED, REWARDS]);
  });
});

describe("exported rows", () => {
  test("are those of the batch and the unlabelled one", () => {
    const rollouts = exportedRows().map((row) => rolloutOf(row.decision_id));
    expect(rollouts.sort()).toEqual([...IN_AT_STEP_LEVEL, "unlabelled"].sort());
    expect(said("export")).toMatchObject([
      { rows: WITH_UNLABELLED, labelled: ADMITTED, with_propensity: WITH_UNLABELLED },
    ]);
  });

  test("keep a missing reward missing, and every propensity", () => {
    const rows = exportedRows();
    expect(rows.filter(({ reward }) => reward === null).map((row) => rolloutOf(row.decision_id))).toContain(
      "unlabelled",
    );
    expect(rows.every(({ propensity }) => propensity !== null)).toBe(true);
  });

  test("add up the feedback of a rollout and of its call", () => {
    const late = exportedRows().filter((row) => rolloutOf(row.decision_id) === "late");
    expect(late.map(({ reward }) => reward)).toEqual([3]);
  });

  test("bring what the batch brings", () => {
    expect(sum(exportedRows().map(({ reward }) => reward ?? 0))).toBe(REWARDS);
  });
});

test("rewards are analysed over the rows of the batch", () => {
  const [report] = said<RewardReport>("rewards");
  expect(report!.rows).toBe(ADMITTED);
  expect(report!.all.mean).toBeCloseTo(REWARDS / ADMITTED, 12);
  expect(report!.byArm.large).toMatchObject({ count: 63, mean: expect.closeTo(52 / 63, 12) });
  expect(report!.byArm.small).toMatchObject({ count: 21, mean: expect.closeTo(13 / 21, 12) });
  // An arm has the same propensity in every row, so self-normalised values are plain means.
  expect(report!.ranking).toEqual([
    { arm: "large", value: expect.closeTo(52 / 63, 12) },
    { arm: "small", value: expect.closeTo(13 / 21, 12) },
  ]);
});

interface RewardReport {
  readonly rows: number;
  readonly all: { readonly mean: number };
  readonly byArm: Readonly<Record<string, object>>;
  readonly ranking: readonly object[];
}

describe("training", () => {
  test("of a bandit counts each arm as the batch does", () => {
    expect(said("ucb")).toMatchObject([{ rows: ADMITTED, heldBack: 0, sealed: true }]);
    expect(armsIn("ucb")).toEqual(ARMS);
  });

  test("of a bandit on the train split counts the admitted tasks of it", () => {
    expect(said("ucb split")).toMatchObject([{ rows: DEFAULT_SPLIT.rows, heldBack: DEFAULT_SPLIT.heldBack }]);
    expect(armsIn("split")).toEqual(DEFAULT_SPLIT.arms);
  });

  test("of a clone takes the rows of the batch", () => {
    expect(said("bc")).toMatchObject([{ rows: ADMITTED, heldBack: 0, sealed: true }]);
  });

  test("of a clone prefers large, as the router did, and does not rule small out", () => {
    const { answer } = policyOf(readCheckpoint(place("bc")));
    const candidates = ["large", "small"].map((id) => ({ id, selectable: true, reasons: [], features: {} }));
    const fields = { messages: 1, tools: 0, stream: false };
    const { probabilities } = answer({ prompt: "Add two and three.", fields }, candidates);
    expect(probabilities[0]).toBeGreaterThan(0.5);
    expect(probabilities[0]).toBeLessThan(1);
  });

  test.each(["ucb", "split", "bc"])("names its batch in the revision: %s", async (folder) => {
    const batches = batchesOf(folder);
    expect(batches).toHaveLength(1);
    expect(await cli.run(`batch verify ${batches[0]}`)).toMatchObject({ code: 0 });
  });

  test("learns from the batch that `batch assemble` cuts", async () => {
    const [shown] = (await cli.json(`batch show ${batchesOf("ucb")[0]}`)) as ShownBatch[];
    expect(shown!.batch.totals).toMatchObject({ rows: ADMITTED, rewardSum: REWARDS });
    expect(reasonsOf(shown!)).toEqual(STEP_REASONS);
  });

  test("can be verified from the revision to the calls", () => {
    expectWalked({ batch: batchesOf("ucb")[0]!, artifacts: COLLECTED, calls: COLLECTED });
  });
});

interface EvaluationReport {
  readonly data: { rows: number; leftOut: { train: number; calibration: number } };
  readonly contenders: readonly {
    name: string;
    basis: string;
    values: { reward: { value: number; intervals: readonly { low: number; high: number }[] } };
    panels: {
      reward?: { diagnostics: { effectiveSize: number; meanWeight: number }; rows: readonly PanelRow[] };
    };
  }[];
}
interface PanelRow {
  readonly estimator: string;
  readonly value: number;
}

function contender(name: string) {
  return said<EvaluationReport>("evaluate")[0]!.contenders.find((each) => each.name === name)!;
}

function estimateOf(name: string, estimator: string): number {
  return contender(name).panels.reward!.rows.find((row) => row.estimator === estimator)!.value;
}

describe("evaluation", () => {
  test("judges by the admitted rows of the second window", () => {
    const [{ data }] = said<EvaluationReport>("evaluate") as [EvaluationReport];
    expect(data).toMatchObject({ rows: JUDGED, leftOut: { train: ADMITTED, calibration: 0 } });
  });

  test("finds what the log brought", () => {
    expect(contender("behaviour").values.reward.value).toBeCloseTo(BEHAVIOUR, 12);
  });

  test("finds what always choosing large brings, by weights", () => {
    for (const name of ["learned", "static", "single"]) {
      expect(contender(name).basis).toBe("off-policy");
      expect(estimateOf(name, "IPS")).toBeCloseTo(ALWAYS_LARGE, 12);
      expect(estimateOf(name, "SNIPS")).toBeCloseTo(ALWAYS_LARGE, 12);
    }
    const { diagnostics } = contender("learned").panels.reward!;
    expect(diagnostics.effectiveSize).toBeCloseTo(72, 9);
    expect(diagnostics.meanWeight).toBeCloseTo(1, 12);
  });

  test("finds what chance brings, by weights", () => {
    expect(estimateOf("random", "IPS")).toBeCloseTo(ANY, 12);
    expect(estimateOf("random", "SNIPS")).toBeCloseTo(ANY, 12);
  });

  test("covers the values with its intervals", () => {
    for (const [name, value] of [["learned", ALWAYS_LARGE] as const, ["random", ANY] as const])
      for (const { low, high } of contender(name).values.reward.intervals) {
        expect(low).toBeLessThan(value);
        expect(high).toBeGreaterThan(value);
      }
  });
});

interface GateReport {
  readonly outcome: string;
  readonly passed?: { readonly id: string };
  readonly data: { rows: number; leftOut: { train: number } };
  readonly candidates: readonly { checks: readonly { baseline: number; difference: number }[] }[];
}

describe("the gate", () => {
  test("lets the bandit through: it is better than the log by 5/6 − 3/4, with a margin of 0.05 to lose", () => {
    const [verdict] = said<GateReport>("gate ucb");
    expect(verdict).toMatchObject({ outcome: "pass", passed: { id: "router-ucb" } });
  });

  test("stops the clone: it gives a share of calls to small, which solves 1/2 where large solves 5/6, with nothing to lose", () => {
    expect(said("gate bc", 1)).toMatchObject([{ outcome: "refuse" }]);
  });

  test("judges by the admitted rows, and the log is worth 3/4", () => {
    const [verdict] = said<GateReport>("gate ucb");
    expect(verdict!.data).toMatchObject({ rows: JUDGED, leftOut: { train: ADMITTED } });
    expect(verdict!.candidates[0]!.checks[0]!.baseline).toBeCloseTo(BEHAVIOUR, 12);
  });
});

test("the whole book is self-consistent at the end", () => {
  const [report] = said<{ ok: boolean; problems: unknown[]; trust: { artifacts: number } }>("verify book");
  // 91 of the first window and 98 of the second.
  expect(report).toMatchObject({ ok: true, problems: [], trust: { artifacts: 189 } });
});

/** The rewards of the dense view, which trainers read. */
async function denseRewards(): Promise<number[]> {
  const store = await openReplay(place("store"));
  try {
    return Array.from((await readDense(store)).supervision.reward);
  } finally {
    store.close();
  }
}

async function rolloutsInStore(): Promise<string[]> {
  const store = await openReplay(place("store"));
  try {
    const found: string[] = [];
    for await (const { columns } of store.blocks("chains", ["rollout"])) found.push(...columns.rollout);
    return found.sort();
  } finally {
    store.close();
  }
}

/** The rows of a batch as `batch export` writes them. */
async function exportBatch(digest: string): Promise<{ reward: number }[]> {
  const out = place("batch.jsonl");
  await cli.ok(`batch export ${digest} --format jsonl --out ${out}`);
  const [head, ...rows] = readFileSync(out, "utf8").trimEnd().split("\n");
  expect(JSON.parse(head!)).toMatchObject({ schema: "rollbook.batch-export.v1", batch: digest });
  return rows.map((line) => JSON.parse(line) as { reward: number });
}

/** The drift budget of on-policy batches: it accepts 3 revisions and quarantines up to 5. */
function expectBudgetNamed(ledger: object): void {
  expect(ledger).toMatchObject({ freshness: { drift: { accept: 3, quarantine: 5 } } });
}

/** Checks that `verify <revision>` reaches the batch, every rollout in its manifest, and every call of these
 *  rollouts. */
function expectWalked(expected: { batch: string; artifacts: number; calls: number }): void {
  const { code, out } = walk.get("verify revision")!;
  expect(code).toBe(0);
  expect(out).toContain(expected.batch);
  const { counts } = JSON.parse(out) as { counts: Record<string, number> };
  expect(counts).toMatchObject({
    "rollbook.trainer-batch.v1": 1,
    "rollbook.rollout-content.v1": expected.artifacts,
    "rollbook.call.v1": expected.calls,
  });
}
