/** Reads the facts of a run from the sealed records of its book, for the report.
 *  In: a book, the configuration of the run. Out: facts of the windows that have ended. Writes only checkpoints, to the
 *  given folder. */
import { type Digest, RollbookError, rngFrom } from "../../base/index.ts";
import { loadDecisions } from "../../book/decisions/index.ts";
import type { BookOnDisk } from "../../book/open/index.ts";
import { admittedRollouts } from "../../book/rollouts/index.ts";
import { readWorld } from "../../book/sim/index.ts";
import { countParts } from "../../book/train/index.ts";
import { EvaluationData, toJudgedRows } from "../../judge/evaluate/index.ts";
import { correctedInterval } from "../../judge/ope/index.ts";
import type { RunFacts, RunLearner, RunWindow } from "../../view/report/run-facts.ts";
import type { LedgerFacts } from "../../view/runs/demo-summary.ts";
import type { LoopConfig } from "../config.ts";
import { type LoopWindow, type RunState, runDigest } from "../fold.ts";
import { collectedIn, sourcesOf } from "../members.ts";
import { windowStatus } from "../status.ts";
import { choiceFamily } from "../world/index.ts";
import { policyPoints } from "./policy-points.ts";
import { runLineage } from "./run-lineage.ts";

const LEVEL = 0.95;

interface RunFactsRequest {
  readonly config: LoopConfig;
  readonly state: RunState;
  /** Folder of the checkpoints; missing ones are restored from the book. */
  readonly folder: string;
}

export async function runFacts(book: BookOnDisk, request: RunFactsRequest): Promise<RunFacts> {
  const { config, folder } = request;
  const state = endedOf(request.state);
  const windows: RunWindow[] = [];
  const perUsd =
    config.world.kind === "simulator" ? readWorld(config.world, "world.models").weights.cost.perUsd : 1;
  for (const window of state.windows) windows.push(await windowFacts(book, { config, perUsd }, window));
  const [first, last] = [windows[0]!, windows.at(-1)!];
  const optimum = windowStatus(state.windows.at(-1)!).optimum;
  const points = await policyPoints({ book, config, state, folder });
  const { alpha, epsilonQuality, epsilonCost } = config.gate;
  const digest = runDigest(state, state.windows.length);
  return {
    ...{ run: config.run, seed: config.seed, windows, lineage: runLineage(state, config) },
    rollouts: windows.reduce((sum, { collected }) => sum + collected, 0),
    models: await modelsOf(book, config, state),
    ...{ optimum, behaviourValue: first.collectedValue, servedValue: last.servedValue },
    gapClosed: gapOf(first.collectedValue, last.servedValue, optimum),
    ledger: await ledgerOf(book, config, state),
    costQuality: points,
    costUnit:
      config.world.kind === "simulator" ? "USD" : "as the agent reports it, else USD of the recorded calls",
    costQualityBasis: config.world.kind === "simulator" ? "exact" : "estimated",
    gate: { alpha, epsilonQuality, epsilonCost },
    digest,
  };
}

function endedOf(state: RunState): RunState {
  const windows = state.windows.filter(({ final }) => final !== undefined);
  if (windows.length > 0) return { ...state, windows };
  throw new RollbookError(
    "no-run",
    { run: state.run },
    `no window of ${state.run} has ended. Wait for its first window, or continue the run with \`rollbook run resume\`.`,
  );
}

async function windowFacts(
  book: BookOnDisk,
  { config, perUsd }: { config: LoopConfig; perUsd: number },
  window: LoopWindow,
): Promise<RunWindow> {
  const status = windowStatus(window);
  const learners = learnersOf(config, window);
  return {
    ...{ index: window.number, collected: status.rollouts, collectedBy: status.collectedBy },
    ...{ collectedValue: status.behaviourValue, servedValue: status.servedValue, serves: status.serves! },
    outcome: status.state === "released" ? "released" : "kept",
    ...(await observedIn(book, {
      contents: await collectedIn(book, [window]),
      perUsd,
      family: choiceFamily(config.world),
    })),
    learners,
    refusals: refusalsOf(config, window),
  };
}

/** Observed reward and cost of a window's rollouts; samples of one task are not independent. The simulator logs cost as
 *  a share of the dollars that count as full cost. An agent logs cost in a unit of its choice. */
async function observedIn(
  book: BookOnDisk,
  { contents, perUsd, family }: { contents: ReadonlySet<Digest>; perUsd: number; family: string },
): Promise<Pick<RunWindow, "reward" | "costUsd">> {
  const { rows } = await loadDecisions(book, { contents, family, propensity: "any" });
  const judged = toJudgedRows(rows, "task").rows;
  if (judged.length === 0) return {};
  const data = new EvaluationData(judged, { rng: rngFrom(0n), estimatePropensities: true });
  const estimate = data.logged("reward");
  const { low, high } = correctedInterval(estimate, LEVEL);
  return {
    reward: { mean: estimate.value, interval: { low, high, level: LEVEL } },
    ...(data.measures.includes("cost") ? { costUsd: data.logged("cost").value * perUsd } : {}),
  };
}

function learnersOf({ learners }: LoopConfig, window: LoopWindow): RunLearner[] {
  const { outcome, estimate, candidates, servedValue, serves, state } = windowStatus(window);
  const { revision } = window.need("trained").step;
  const all = candidates ?? [
    {
      ...{ learner: learners[0]!.kind, revision: revision.id, outcome, estimate },
      ...(state === "released" ? { value: servedValue } : {}),
    },
  ];
  return all.map((each) => ({
    ...{ name: each.learner, revision: each.revision, exactValue: each.value },
    ...{ passed: each.outcome === "pass", released: state === "released" && each.revision === serves },
    ...(each.estimate === undefined
      ? {}
      : {
          estimate: each.estimate.value,
          interval: { low: each.estimate.low, high: each.estimate.high, level: each.estimate.level ?? LEVEL },
        }),
  }));
}

function refusalsOf({ learners }: LoopConfig, window: LoopWindow): RunWindow["refusals"] {
  const { candidates, reasons = [] } = windowStatus(window);
  const all = candidates ?? [{ learner: learners[0]!.kind, reasons }];
  return all.flatMap((each) =>
    (each.reasons ?? reasons).length === 0
      ? []
      : [{ learner: each.learner, reasons: each.reasons ?? reasons }],
  );
}

/** Ledger of the last window: the considered rollouts, their uses, and the reasons for the exclusions. */
async function ledgerOf(book: BookOnDisk, config: LoopConfig, state: RunState): Promise<LedgerFacts> {
  const last = state.windows.at(-1)!;
  const { considered, excluded } = last.need("scored").step;
  const { drift } = config.freshness ?? {};
  const admitted = await admittedRollouts(book, {
    ...{
      contents: await collectedIn(book, sourcesOf(config, state, last)),
      family: choiceFamily(config.world),
    },
    ...{ target: last.need("planned").envelope.router!, level: "step" },
    freshness:
      drift === undefined ? "none" : { drift: { accept: drift, quarantine: drift }, unmeasured: "discarded" },
    ...{ unlabelled: "exclude", propensity: "choice" },
  });
  const parts = countParts(admitted, config.split);
  return {
    considered,
    admitted: (["train", "calibration", "judge"] as const).map((use) => ({ use, rollouts: parts[use] })),
    excluded,
  };
}

async function modelsOf(book: BookOnDisk, config: LoopConfig, state: RunState): Promise<readonly string[]> {
  const { rows } = await loadDecisions(book, {
    ...{ contents: await collectedIn(book, state.windows.slice(0, 1)), family: choiceFamily(config.world) },
    propensity: "any",
  });
  return [...new Set(rows.flatMap(({ candidates }) => candidates.map(({ id }) => id)))].sort();
}

function gapOf(
  from: number | undefined,
  to: number | undefined,
  best: number | undefined,
): number | undefined {
  if (from === undefined || to === undefined || best === undefined || best === from) return undefined;
  return (to - from) / (best - from);
}
