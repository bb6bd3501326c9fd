/** Shows learning and judging: a routing log is sealed into the book, and its rewards are analysed. A clone and a
 *  bandit learn from sealed batches of it. The clone's floor is promised on the calibration split. Both are evaluated
 *  and gated on the judge split. The scene runs the code of the commands. It has its own book in the scratch folder,
 *  because its log is larger than everything else. */
import { join } from "node:path";
import { decisionRows } from "../../book/decisions/index.ts";
import { evaluateCheckpoint, gateCheckpoints } from "../../book/judge/index.ts";
import { verifyNamed } from "../../book/maintain/index.ts";
import { type OpenBook, useBook } from "../../book/open/index.ts";
import { type TrainedPolicy, trainPolicy } from "../../book/train/index.ts";
import { RolloutContent, TrainerBatch } from "../../contract/index.ts";
import { sealDecision } from "../../convert/index.ts";
import { analyzeRewards, type Evaluation, rewardedOf } from "../../judge/index.ts";
import { denseSpec, type LoggedRow } from "../../learn/index.ts";
import { DEFAULT_FEATURES } from "../../policy/index.ts";
import { makeSealer } from "../../store/index.ts";
import { figure, plural, short } from "../../view/format.ts";
import { makeRoutingLog } from "./routing-log.ts";
import type { Stage, TourScene } from "./stage.ts";

const RISK = 0.1;
/** Minimum probability of each model's choice: three in ten. */
const PROMISES = { propensityFloor: 0.3, qualityRange: { low: 0, high: 1 } };
const MARGIN = 0.08;

export const learnScene: TourScene = {
  title: "learn",
  play: (stage) =>
    withLog(stage, async (book) => {
      await sealLog(book, stage.seed);
      const rows = await readLog(book);
      const { ranking } = analyzeRewards(rewardedOf(rows));
      const [clone, bandit] = await train(book, stage);
      const { floor, coverage, units } = clone.checkpoint.promise!.record;
      const [walked] = await verifyNamed(book, bandit.checkpoint.revision.digest);
      const { report } = walked!;
      const rollouts = report.counts[RolloutContent.kind] ?? 0;
      return {
        lines: [
          `${plural(rows.length, "routing decision")} with their probabilities; always one model: ${ranking.map(({ arm, value }) => `${arm} ${figure(value)}`).join(", ")}`,
          `trained on the train split: ${nameOf(clone)} clones the log, ${nameOf(bandit)} is LinUCB, both from batch ${short(bandit.batches[0]!)}`,
          floor === null
            ? `the clone decides no request, and the static table decides all: ${plural(units, "calibration row")} show no confidence floor that keeps its loss within ${RISK}`
            : `the clone acts above a confidence of ${figure(floor)}, on ${figure(100 * coverage)} %: by ${plural(units, "calibration row")} choosing differently from the table loses at most ${RISK} on average`,
        ],
        proved:
          report.ok && report.counts[TrainerBatch.kind] === 1 && rollouts === rows.length
            ? `a revision leads to its batch and the batch to ${plural(rollouts, "rollout")}; every digest on the way was recomputed`
            : "NOTHING: the revision does not lead back to what taught it",
        data: {
          ranking,
          batches: bandit.batches,
          policies: [clone, bandit].map(({ checkpoint }) => checkpoint.revision.digest),
          promise: clone.checkpoint.promise!.digest,
        },
      };
    }),
};

export const judgeScene: TourScene = {
  title: "judge and gate",
  play: (stage) =>
    withLog(stage, async (opened) => {
      const { seed } = stage;
      const [clone, bandit] = [folderOf(stage, "clone"), folderOf(stage, "bandit")];
      const { evaluation } = await evaluateCheckpoint(opened, { checkpoint: bandit, seed });
      const { verdict, judged } = await gateCheckpoints(opened, {
        ...{ seed, candidates: [clone, bandit], epsilonQuality: MARGIN },
      });
      const { outcome, passed, candidates } = verdict.record;
      return {
        lines: [
          ...evaluationLines(evaluation),
          `the gate, against the table, on ${plural(judged.rows.length, "row")} that neither has seen: clone ${candidates[0]!.outcome}, bandit ${candidates[1]!.outcome}; verdict ${short(verdict.digest)}`,
        ],
        proved:
          outcome === "pass" && passed!.id === "router-bandit"
            ? "a policy goes on only if fresh rows show that it is no worse and costs no more"
            : `NOTHING: the gate said ${outcome}: ${candidates.flatMap(({ reasons }) => reasons).join("; ")}`,
        data: { verdict: verdict.digest, outcome, passed: passed?.id ?? null },
      };
    }),
};

function withLog<T>({ scratch, clock, signer }: Stage, work: (book: OpenBook) => Promise<T>): Promise<T> {
  return useBook(join(scratch, "learned"), { create: true, clock, signer: () => signer }, work);
}

async function sealLog({ store, signer }: OpenBook, seed: bigint): Promise<void> {
  const sealer = makeSealer(store, signer);
  await Promise.all(makeRoutingLog(seed).map((row) => sealer.add(sealDecision(row))));
}

async function readLog(book: OpenBook): Promise<LoggedRow[]> {
  const rows: LoggedRow[] = [];
  for await (const row of (await decisionRows(book, {})).rows()) rows.push(row);
  return rows;
}

async function train(book: OpenBook, stage: Stage): Promise<[TrainedPolicy, TrainedPolicy]> {
  const { seed } = stage;
  const bandit = await trainPolicy(book, {
    ...{ seed, id: "router-bandit", out: folderOf(stage, "bandit") },
    learner: { kind: "linucb", alpha: 0.1, spec: denseSpec([]) },
  });
  const clone = await trainPolicy(book, {
    ...{ seed, id: "router-clone", out: folderOf(stage, "clone") },
    ...{ floorRisk: RISK, promise: PROMISES },
    learner: { kind: "bc", spec: DEFAULT_FEATURES },
  });
  return [clone, bandit];
}

function nameOf({ checkpoint: { revision } }: TrainedPolicy): string {
  return `${revision.record.id} (${short(revision.record.digest)})`;
}

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

function folderOf({ scratch }: Stage, name: "clone" | "bandit"): string {
  return join(scratch, "policies", name);
}
