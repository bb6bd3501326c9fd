/** Off-policy evaluation with 1000 bootstrap replicates compared with Open Bandit Pipeline, on the same columns and the
 *  same reward predictions; points must agree to 1e-9. In turns in one run; both sides compute points and intervals. */
import { rngFrom } from "../../src/base/rng.ts";
import { readOpenBandit } from "../../src/convert/open-bandit.ts";
import {
  bootstrap,
  crossFitMatrix,
  directMethod,
  doublyRobust,
  drShrinkage,
  type Estimate,
  ips,
  type LoggedDecisions,
  percentileInterval,
  predictionsFrom,
  type RewardPredictions,
  snips,
  switchDr,
} from "../../src/judge/ope/index.ts";
import { dataFile } from "../judge/part.ts";
import { median } from "../support/interleave.ts";
import { toColumns } from "../support/judge/to-columns.ts";
import { OpenBanditPipeline } from "./open-bandit-pipeline.ts";

const REPLICATES = 1000;
const ROUNDS = 5;
const SWITCH = 10;
const SHRINKAGE = 100;
const ITEMS = 34;
const SELECTIONS: readonly (readonly string[])[] = [
  ["IPS"],
  ["SNIPS"],
  ["DR"],
  ["IPS", "SNIPS", "DM", "DR", "Switch-DR", "DRos"],
];

export async function opeSpeed(data: string): Promise<Record<string, string | number>[]> {
  const log = await loadLog(data);
  const matrix = crossFitMatrix(log, { rng: rngFrom(1) });
  const peer = await OpenBanditPipeline.start({
    columns: {
      reward: log.reward,
      behaviour: log.behaviour,
      chosen: log.candidates!.chosen,
      target: log.candidates!.target,
      predictions: matrix,
    },
    rows: log.reward.length,
    actions: ITEMS,
    switch: SWITCH,
    shrinkage: SHRINKAGE,
  });
  const rows: Record<string, string | number>[] = [];
  for (const names of SELECTIONS) rows.push(await compare({ log, matrix, names, peer }));
  await peer.stop();
  return rows;
}

async function compare({
  log,
  matrix,
  names,
  peer,
}: {
  log: LoggedDecisions;
  matrix: Float64Array;
  names: readonly string[];
  peer: OpenBanditPipeline;
}): Promise<Record<string, string | number>> {
  const [ours, multinomial, theirs]: [number[], number[], number[]] = [[], [], []];
  let gap = 0;
  for (let round = 0; round <= ROUNDS; round++) {
    const reply = await peer.estimate(names, REPLICATES);
    const start = performance.now();
    const estimates = evaluate({ log, matrix, names, draws: "two-point" });
    const middle = performance.now();
    evaluate({ log, matrix, names, draws: "multinomial" });
    const end = performance.now();
    for (const { name, value } of estimates) gap = Math.max(gap, Math.abs(value - reply.points[name]!));
    if (round === 0) continue;
    theirs.push(1000 * reply.seconds);
    ours.push(middle - start);
    multinomial.push(end - middle);
  }
  return {
    estimators: names.length === 1 ? names[0]! : `all ${names.length}`,
    "ours, ms": median(ours),
    "obp, ms": median(theirs),
    "× obp": median(theirs) / median(ours),
    "× obp, multinomial draws": median(theirs) / median(multinomial),
    "points differ by": gap.toExponential(1),
    "bar (≥ 10 ×, ≤ 1e-9)": median(theirs) / median(ours) >= 10 && gap <= 1e-9 ? "met" : "MISSED",
    peer: peer.version,
  };
}

function evaluate({
  log,
  matrix,
  names,
  draws,
}: {
  log: LoggedDecisions;
  matrix: Float64Array;
  names: readonly string[];
  draws: "two-point" | "multinomial";
}): Estimate[] {
  let made: RewardPredictions | undefined;
  // Made once, and only for the estimators that use it, as in the peer.
  const q = () => (made ??= predictionsFrom(log, matrix));
  const make: Record<string, () => Estimate> = {
    IPS: () => ips(log),
    SNIPS: () => snips(log),
    DM: () => directMethod(log, q()),
    DR: () => doublyRobust(log, q()),
    "Switch-DR": () => switchDr(log, q(), SWITCH),
    DRos: () => drShrinkage(log, q(), SHRINKAGE),
  };
  const estimates = names.map((name) => make[name]!());
  for (const replicates of bootstrap(estimates, { rng: rngFrom(1), replicates: REPLICATES, draws }))
    percentileInterval(replicates);
  return estimates;
}

/** The Thompson log, evaluated for the uniform policy, with the users' categories as one-hot features. */
async function loadLog(data: string): Promise<LoggedDecisions> {
  const file = dataFile(data, "obd/bts/men.csv.gz");
  const columns = new Map<string, number>();
  for await (const { context } of readOpenBandit(file))
    for (const [name] of context) if (!columns.has(name)) columns.set(name, columns.size);
  const uniform = new Float64Array(ITEMS).fill(1 / ITEMS);
  const { log } = await toColumns(readOpenBandit(file), {
    target: () => uniform,
    features: ({ context }) => {
      const dense = new Float64Array(columns.size);
      for (const [name, value] of context) dense[columns.get(name)!] = value;
      return dense;
    },
  });
  return log;
}
