/** Scenes that learn and judge: rewards analysed, a clone and a bandit trained on the train split, the clone's floor
 *  promised on the calibration split, both evaluated and gated on the judge split. All of it is what the commands run. */
import { join } from "node:path";
import { rngFrom } from "../../base/index.ts";
import type { RoutingRow } from "../../convert/routing-jsonl.ts";
import { type Evaluation, evaluatePolicy, gatePolicies } from "../../judge/index.ts";
import { analyzeRewards } from "../../judge/reward-analysis.ts";
import {
  DEFAULT_SPLIT,
  denseSpec,
  fitStaticTable,
  trainBc,
  trainLinUcb,
  withBaseline,
  withSplit,
} from "../../learn/index.ts";
import {
  CHECKPOINT_KIND,
  type Checkpoint,
  DEFAULT_FEATURES,
  type PolicyModel,
  sealCheckpoint,
  writeCheckpoint,
} from "../../policy/index.ts";
import { toTrainingData } from "../../book/decisions/load-rows.ts";
import { requirePart } from "../../book/decisions/split-rows.ts";
import { promiseFloor } from "../../book/judge/calibrate.ts";
import { judgeRowsOf } from "../../book/judge/judge-rows.ts";
import { fieldOf, loadPolicy } from "../../book/judge/load-policy.ts";
import { sealVerdict } from "../../book/judge/seal-verdict.ts";
import { figure, plural, short } from "../../view/format.ts";
import { makeRoutingLog } from "./routing-log.ts";
import type { Scene, Stage } from "./stage.ts";

const RISK = 0.1;
/** Each model is chosen at least this often: three in ten. */
const PROMISES = { propensityFloor: 0.3, qualityRange: { low: 0, high: 1 } };
const MARGIN = 0.08;

export const learnScene: Scene = {
  title: "learn",
  async play(stage) {
    const rows = makeRoutingLog(stage.seed);
    const { ranking } = rewardsOf(rows);
    const [clone, bandit] = train(rows, stage);
    for (const checkpoint of [clone, bandit]) await keep(stage, checkpoint);
    const { floor, coverage, units } = clone.promise!.record;
    return {
      lines: [
        `${plural(rows.length, "routing decision")} with their probabilities; always one model: ${ranking.map(({ arm, value }) => `${arm} ${figure(value)}`).join(", ")}`,
        `trained on the train split: ${clone.revision.record.id} (${short(clone.revision.record.digest)}) clones the log, ${bandit.revision.record.id} (${short(bandit.revision.record.digest)}) is LinUCB`,
        floor === null
          ? `the clone may not act: by ${plural(units, "calibration row")} no confidence floor keeps the loss of its departures at ${RISK}`
          : `the clone acts above a confidence of ${figure(floor)}, on ${figure(100 * coverage)} %: by ${plural(units, "calibration row")} its departures lose at most ${RISK} in expectation`,
      ],
      proved: "a checkpoint names every row it has seen, and a floor is a promise, not a habit",
      data: {
        ranking,
        policies: [clone, bandit].map(({ revision }) => revision.digest),
        promise: clone.promise!.digest,
      },
    };
  },
};

export const judgeScene: Scene = {
  title: "judge and gate",
  async play(stage) {
    const rows = makeRoutingLog(stage.seed);
    const [clone, bandit] = [
      loadPolicy(folderOf(stage, "clone"), {}),
      loadPolicy(folderOf(stage, "bandit"), {}),
    ];
    const judged = judgeRowsOf(rows, [clone, bandit]);
    const fields = [clone, bandit].map((each) => fieldOf(each, { exploration: 0 }));
    const evaluation = evaluatePolicy(judged.rows, {
      field: fields[1]!,
      rng: rngFrom(stage.seed),
      replicates: 300,
    });
    const rule = {
      method: "student-t",
      alpha: 0.05,
      tried: 2,
      epsilonQuality: MARGIN,
      epsilonCost: 0,
    } as const;
    const table = { ...fields[1]!, policy: undefined };
    const gated = gatePolicies(judged.rows, {
      rule,
      candidates: fields,
      baseline: table,
      rng: rngFrom(stage.seed),
    });
    const verdict = sealVerdict({
      ...{ candidates: [clone, bandit], fields, gated, rule, judged, seed: stage.seed },
      baseline: { kind: "static", field: table },
      atMs: stage.clock.nowMs(),
    });
    stage.book.put(verdict.kind, verdict.bytes);
    await stage.book.flush();
    const { outcome, passed } = verdict.record;
    return {
      lines: [
        ...evaluationLines(evaluation),
        `the gate, against the table, on ${plural(judged.rows.length, "row")} that neither has seen: clone ${gated[0]!.outcome}, bandit ${gated[1]!.outcome}; verdict ${short(verdict.digest)}`,
      ],
      proved:
        outcome === "pass" && passed!.id === bandit.policy.revision.id
          ? "a policy goes on only if fresh rows show that it is no worse and costs no more"
          : `NOTHING: the gate said ${outcome}: ${gated.flatMap(({ reasons }) => reasons).join("; ")}`,
      data: { verdict: verdict.digest, outcome, passed: passed?.id ?? null },
    };
  },
};

function evaluationLines({ contenders, comparisons, liveness }: Evaluation): string[] {
  const of = (name: string) => contenders.find((each) => each.name === name)!.values;
  const gain = comparisons.find(({ measure, against }) => measure === "reward" && against === "static")!;
  const { low, high } = gain.difference.intervals[0]!;
  const each = ["learned", "static", "behaviour", "random"].map(
    (name) => `${name} ${(of(name).reward?.estimate.value ?? Number.NaN).toFixed(3)}`,
  );
  return [
    `the bandit decides ${figure(100 * liveness.live)} % of rows; reward by DR: ${each.join(", ")}`,
    `learned − static, paired: ${gain.difference.estimate.value.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]: ${gain.says}`,
  ];
}

function rewardsOf(rows: readonly RoutingRow[]) {
  return analyzeRewards(
    rows.map((row) => ({
      id: row.decision_id,
      source: row.data_source,
      arm: row.model_chosen,
      propensity: row.propensity,
      reward: row.reward!,
      terms: row.state.terms,
    })),
  );
}

function train(rows: readonly RoutingRow[], { seed, clock }: Stage): [Checkpoint, Checkpoint] {
  const rule = DEFAULT_SPLIT;
  const train = requirePart(rows, "train", rule);
  const calibration = requirePart(rows, "calibration", rule);
  const data = toTrainingData(train);
  const rival = fitStaticTable(data);
  const sealed = (model: PolicyModel, id: string, held: readonly RoutingRow[]) =>
    sealCheckpoint(
      withBaseline(
        withSplit(model, {
          rule,
          units: { train: train.map((row) => row.task_id), calibration: held.map((row) => row.task_id) },
        }),
        rival,
      ),
      { family: "router", id, batches: [], seed, producedAtMs: clock.nowMs() },
    );
  const clone = sealed(trainBc(data, { spec: DEFAULT_FEATURES, seed }).model, "router-clone", calibration);
  const bandit = sealed(trainLinUcb(data, { spec: denseSpec([]), alpha: 0.1 }), "router-bandit", []);
  const promise = promiseFloor(clone, {
    ...{ rows: calibration, rule, alpha: RISK, flags: PROMISES, atMs: clock.nowMs() },
  });
  return [{ ...clone, promise }, bandit];
}

async function keep(stage: Stage, checkpoint: Checkpoint): Promise<void> {
  const { revision, bytes, promise } = checkpoint;
  writeCheckpoint(folderOf(stage, revision.record.id === "router-clone" ? "clone" : "bandit"), checkpoint);
  stage.book.put(CHECKPOINT_KIND, bytes);
  stage.book.put(revision.kind, revision.bytes);
  if (promise !== undefined) stage.book.put(promise.kind, promise.bytes);
  await stage.book.flush();
}

function folderOf({ scratch }: Stage, name: "clone" | "bandit"): string {
  return join(scratch, "policies", name);
}
