/** Coverage on UCI sets turned into bandits, where the truth is known exactly.
 *  Rows of the held-out half are the population; each repetition draws rows from it with replacement, lets the logging
 *  policy act, and asks whether the 95 % intervals hold the population's value. */

import { softmax } from "../../src/base/exact-math.ts";
import { rngFrom } from "../../src/base/rng.ts";
import {
  bernsteinInterval,
  bootstrap,
  confidenceSequence,
  crossFitRewards,
  doublyRobust,
  hoeffdingInterval,
  type Interval,
  ips,
  type LoggedDecisions,
  percentileInterval,
  snips,
  studentInterval,
} from "../../src/judge/ope/index.ts";
import { weightedRange } from "../../test/ope/weighted-range.ts";
import {
  asBandit,
  type BanditPolicies,
  loadMulticlass,
  type Multiclass,
  multiclassValue,
} from "../support/judge/uci-multiclass.ts";
import { between, dataFile, type JudgeOptions, type JudgePart, type JudgeRow, row } from "./part.ts";

const REPETITIONS = 2000;
const SETS = ["optdigits", "satimage"];
/** Share of uniform exploration in the logging policy, and so its propensity floor: share / classes. */
const EXPLORATION = 0.4;
const TARGET_EXPLORATION = 0.1;

export const uciCoverage: JudgePart = {
  name: "uci-coverage",
  async run(options) {
    const rows: JudgeRow[] = [];
    for (const name of SETS) rows.push(...(await coverageOn(name, options)));
    return rows;
  },
};

async function coverageOn(name: string, { data, rng, scale }: JudgeOptions): Promise<JudgeRow[]> {
  const all = await loadMulticlass(dataFile(data, `uci/${name}.data`));
  const { held, policies } = twoPolicies(all);
  const truth = multiclassValue(held, policies.target);
  const rows = held.label.length;
  const repetitions = Math.max(20, Math.round(REPETITIONS * scale));
  const hits = new Map<string, number>();
  for (let repetition = 0; repetition < repetitions; repetition++) {
    const draw = rng.split(`${name} ${repetition}`);
    const sample = Int32Array.from({ length: rows }, () => draw.below(rows));
    const log = asBandit(held, { ...policies, rows: sample, rng: draw });
    for (const [key, { low, high }] of intervalsOf(log, draw, held.classes.length))
      hits.set(key, (hits.get(key) ?? 0) + (low <= truth && truth <= high ? 1 : 0));
  }
  return [...hits].map(([key, count]) => {
    const share = (100 * count) / repetitions;
    const exact = key.endsWith("bootstrap") || key.endsWith("student-t");
    const bar = exact ? between(share, 93.5, 96.5) : { text: "≥ 95", met: share >= 95 };
    return row(`UCI ${name}, n = ${rows}, ${repetitions} logs`, `coverage %, ${key}`, share.toFixed(2), bar);
  });
}

function intervalsOf(log: LoggedDecisions, rng: JudgeOptions["rng"], classes: number): [string, Interval][] {
  const weighted = ips(log);
  const estimates = [weighted, snips(log), doublyRobust(log, crossFitRewards(log, { rng }))];
  const draws = bootstrap(estimates, { rng: rng.split("bootstrap") });
  const range = weightedRange({ reward: { low: 0, high: 1 }, floor: EXPLORATION / classes });
  return [
    ...estimates.flatMap((estimate, i): [string, Interval][] => [
      [`${estimate.name} bootstrap`, percentileInterval(draws[i]!)],
      [`${estimate.name} student-t`, studentInterval(estimate)],
    ]),
    ["IPS hoeffding", hoeffdingInterval(weighted, { range })],
    ["IPS empirical-bernstein", bernsteinInterval(weighted, { range })],
    ["IPS confidence-sequence", confidenceSequence(weighted, { range })],
  ];
}

/** Two nearest-centroid classifiers from two quarters of the rows, softened; the other half is held out, with the
 *  first classifier's scores as context (the reward model needs no more than those). */
function twoPolicies(all: Multiclass): { held: Multiclass; policies: BanditPolicies } {
  const order = rngFrom(1).shuffle(Array.from(all.label.keys()));
  const quarter = Math.floor(order.length / 4);
  const [first, second] = [order.slice(0, quarter), order.slice(quarter, 2 * quarter)];
  const heldRows = order.slice(2 * quarter);
  const count = all.classes.length;
  const held: Multiclass = {
    width: count,
    features: scoresOf(all, centroids(all, first), heldRows),
    label: Int32Array.from(heldRows, (row) => all.label[row]!),
    classes: all.classes,
  };
  const other = scoresOf(all, centroids(all, second), heldRows);
  return {
    held,
    policies: {
      behaviour: soften(held.features, count, EXPLORATION),
      target: soften(other, count, TARGET_EXPLORATION),
    },
  };
}

function centroids(data: Multiclass, rows: readonly number[]): Float64Array {
  const sums = new Float64Array(data.classes.length * data.width);
  const sizes = new Float64Array(data.classes.length);
  for (const row of rows) {
    const label = data.label[row]!;
    sizes[label] = sizes[label]! + 1;
    for (let j = 0; j < data.width; j++) {
      const at = label * data.width + j;
      sums[at] = sums[at]! + data.features[row * data.width + j]!;
    }
  }
  return sums.map((value, i) => value / sizes[Math.floor(i / data.width)]!);
}

/** Softmax of negative squared distances over the mean distance: rows × classes, sums to 1. */
function scoresOf(data: Multiclass, centres: Float64Array, rows: readonly number[]): Float64Array {
  const count = data.classes.length;
  const scores = new Float64Array(rows.length * count);
  rows.forEach((row, i) => {
    let total = 0;
    for (let a = 0; a < count; a++) {
      let distance = 0;
      for (let j = 0; j < data.width; j++) {
        const gap = data.features[row * data.width + j]! - centres[a * data.width + j]!;
        distance += gap * gap;
      }
      scores[i * count + a] = distance;
      total += distance / count;
    }
    for (let a = 0; a < count; a++) scores[i * count + a] = (-8 * scores[i * count + a]!) / total;
    softmax(scores, i * count, count);
  });
  return scores;
}

function soften(scores: Float64Array, count: number, exploration: number): Float64Array {
  return scores.map((p) => exploration / count + (1 - exploration) * p);
}
