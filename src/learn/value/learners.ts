/** The learners behind a value policy: ridge, logistic, neighbours. Each learns from some rows, then predicts others.
 *  In: encoded rows with outcomes. Out: predictors.
 *  A predictor writes one value per candidate for a row of the data. */
import { exp } from "../../base/index.ts";
import { type NeighbourRows, neighbourMeans } from "../../policy/index.ts";
import { type Outcomes, type SparseRows, scaleRows } from "../rows/index.ts";
import { type LinearValues, type RidgePenalties, solveRidge } from "./solve-ridge.ts";
import type { View, ViewFactors } from "./views.ts";

export interface ValueData {
  readonly rows: SparseRows;
  /** Factors of other views of the rows; undefined: there are none. */
  readonly views?: ViewFactors | undefined;
  readonly outcomes: Pick<Outcomes, "start" | "arm" | "target" | "weight" | "full" | "offered">;
  readonly arms: number;
}

export type RowPredictor = (row: number, out: Float64Array) => void;

export type ValueLearner = { readonly reads: View } & (
  | { readonly kind: "ridge" | "logistic"; readonly penalties: RidgePenalties }
  | { readonly kind: "knn"; readonly k: number }
);

/** The data in the learner's view. The functions below take this data. */
export function viewOf(data: ValueData, { reads }: { readonly reads: View }): ValueData {
  const factors = reads === "all" ? undefined : data.views?.[reads];
  return factors === undefined ? data : { ...data, rows: scaleRows(data.rows, factors), views: undefined };
}

/** The range of rewards, for the logistic link. */
interface RewardRange {
  readonly low: number;
  readonly high: number;
}

interface FitOptions {
  readonly picked: Int32Array;
  /** Start of the solver. */
  readonly from?: Float64Array | undefined;
  /** True: a rough solution, enough to compare settings. */
  readonly rough?: boolean;
}

export function predictorOf(
  data: ValueData,
  learner: ValueLearner,
  options: FitOptions,
): { predict: RowPredictor; state?: Float64Array; fitted?: LinearValues } {
  switch (learner.kind) {
    case "ridge": {
      const fitted = fitRidge(data, learner.penalties, options);
      return { predict: linearPredictor(data, fitted), state: fitted.state, fitted };
    }
    case "logistic": {
      const range = rangeOf(data.outcomes.target);
      const fitted = fitLogistic(data, learner.penalties, options);
      const score = linearPredictor(data, fitted);
      const predict: RowPredictor = (row, out) => {
        score(row, out);
        for (let a = 0; a < out.length; a++) out[a] = linked(out[a]!, range);
      };
      return { predict, fitted };
    }
    case "knn":
      return { predict: neighbourPredictor(data, [learner.k], options.picked) };
    default:
      return learner satisfies never;
  }
}

function linked(score: number, { low, high }: RewardRange): number {
  return low + (high - low) / (1 + exp(-score));
}

const ROUGH = 1e-2;

export function fitRidge(
  data: ValueData,
  penalties: RidgePenalties,
  { picked, from, rough = false }: FitOptions,
): LinearValues {
  const { rows, arms } = data;
  const tolerance = rough ? { tolerance: ROUGH } : {};
  return solveRidge({ ...{ rows, picked, outcomes: unweighted(data), arms, penalties, from }, ...tolerance });
}

/** Every outcome has weight 1. A correct reward model needs no weights, and weights increase variance. */
function unweighted({ outcomes }: ValueData) {
  return { ...outcomes, weight: new Float64Array(outcomes.target.length).fill(1) };
}

const NEWTON_STEPS = 6;
/** Keeps the weights of Newton's steps away from 0. */
const LEAST_VARIANCE = 1e-3;

/** P(high reward) by Newton's method: each step is a ridge regression of the working response. */
export function fitLogistic(
  data: ValueData,
  penalties: RidgePenalties,
  { picked, rough = false }: FitOptions,
): LinearValues {
  const { rows, arms, outcomes } = data;
  const { low, high } = rangeOf(outcomes.target);
  const target = new Float64Array(outcomes.target.length);
  const weight = new Float64Array(outcomes.target.length);
  const scores = new Float64Array(arms);
  let fitted: LinearValues | undefined;
  for (let step = 0; step < NEWTON_STEPS; step++) {
    const score = fitted === undefined ? undefined : linearPredictor(data, fitted);
    for (const r of picked) {
      score?.(r, scores);
      for (let t = outcomes.start[r]!; t < outcomes.start[r + 1]!; t++) {
        const at = scores[outcomes.arm[t]!]!;
        const chance = 1 / (1 + exp(-at));
        const variance = Math.max(LEAST_VARIANCE, chance * (1 - chance));
        const y = high > low ? (outcomes.target[t]! - low) / (high - low) : 0;
        target[t] = at + (y - chance) / variance;
        weight[t] = variance;
      }
    }
    const again = solveRidge({
      ...{ rows, picked, arms, penalties },
      outcomes: { ...outcomes, target, weight },
      from: fitted?.state,
      ...(rough ? { tolerance: ROUGH } : {}),
    });
    fitted = again;
  }
  return fitted!;
}

export function rangeOf(targets: Float64Array): RewardRange {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const each of targets) {
    if (each < low) low = each;
    if (each > high) high = each;
  }
  return { low, high };
}

function linearPredictor({ rows, arms }: ValueData, { weights, bias }: LinearValues): RowPredictor {
  return (row, out) => {
    for (let a = 0; a < arms; a++) out[a] = bias[a]!;
    for (let e = rows.start[row]!; e < rows.start[row + 1]!; e++) {
      const [base, value] = [rows.indices[e]! * arms, rows.values[e]!];
      for (let a = 0; a < arms; a++) out[a] = out[a]! + weights[base + a]! * value;
    }
  };
}

/** Writes one block of values for each number of neighbours. */
export function neighbourPredictor(data: ValueData, ks: readonly number[], picked: Int32Array): RowPredictor {
  const { rows, arms } = data;
  const means = meansOf(data, picked);
  const near = neighbourMeans(neighbourRows(data, picked), { size: rows.size, arms, ks, prior: means });
  return (row, out) => {
    const [from, to] = [rows.start[row]!, rows.start[row + 1]!];
    const vector = {
      indices: rows.indices.subarray(from, to),
      values: rows.values.subarray(from, to),
      count: to - from,
    };
    near(vector, out);
  };
}

/** Copies of the picked rows with their outcomes. */
export function neighbourRows({ rows, outcomes }: ValueData, picked: Int32Array): NeighbourRows {
  const start = new Int32Array(picked.length + 1);
  const counts = new Int32Array(picked.length + 1);
  picked.forEach((r, i) => {
    start[i + 1] = start[i]! + rows.start[r + 1]! - rows.start[r]!;
    counts[i + 1] = counts[i]! + outcomes.start[r + 1]! - outcomes.start[r]!;
  });
  const made = {
    start,
    indices: new Int32Array(start[picked.length]!),
    values: new Float64Array(start[picked.length]!),
    outcomeRow: new Int32Array(counts[picked.length]!),
    arm: new Int32Array(counts[picked.length]!),
    target: new Float64Array(counts[picked.length]!),
  };
  picked.forEach((r, i) => {
    made.indices.set(rows.indices.subarray(rows.start[r]!, rows.start[r + 1]!), start[i]!);
    made.values.set(rows.values.subarray(rows.start[r]!, rows.start[r + 1]!), start[i]!);
    made.outcomeRow.fill(i, counts[i]!, counts[i + 1]!);
    made.arm.set(outcomes.arm.subarray(outcomes.start[r]!, outcomes.start[r + 1]!), counts[i]!);
    made.target.set(outcomes.target.subarray(outcomes.start[r]!, outcomes.start[r + 1]!), counts[i]!);
  });
  return made;
}

/** The mean outcome of each candidate; for a candidate without outcomes, the mean of all outcomes. */
export function meansOf({ outcomes, arms }: ValueData, picked: Int32Array): Float64Array {
  const sums = new Float64Array(arms);
  const counts = new Float64Array(arms);
  let [all, count] = [0, 0];
  for (const r of picked)
    for (let t = outcomes.start[r]!; t < outcomes.start[r + 1]!; t++) {
      const a = outcomes.arm[t]!;
      sums[a] = sums[a]! + outcomes.target[t]!;
      counts[a] = counts[a]! + 1;
      all += outcomes.target[t]!;
      count++;
    }
  return sums.map((sum, a) => (counts[a] === 0 ? all / Math.max(1, count) : sum / counts[a]!));
}

/** The means, shrunk towards their middle by the variance of chance. A policy trusts its parts only as far as held-out
 *  rows support them, so it must not trust means of few outcomes more.
 *  Candidates with equally many outcomes keep their order. */
export function steadyMeans(
  { outcomes, arms }: ValueData,
  picked: Int32Array,
  means: Float64Array,
): Float64Array {
  const { start, arm, target, full } = outcomes;
  const counts = new Float64Array(arms);
  let [squares, count] = [0, 0];
  for (const r of picked) {
    const [from, to] = [start[r]!, start[r + 1]!];
    // With full information, candidates are compared within a row.
    let centre = 0;
    if (full) for (let t = from; t < to; t++) centre += (target[t]! - means[arm[t]!]!) / (to - from);
    for (let t = from; t < to; t++) {
      counts[arm[t]!] = counts[arm[t]!]! + 1;
      squares += (target[t]! - means[arm[t]!]! - centre) ** 2;
      count++;
    }
  }
  const middle = means.reduce((sum, each) => sum + each, 0) / arms;
  const spread = means.reduce((sum, each) => sum + (each - middle) ** 2, 0) / Math.max(1, arms - 1);
  const chance = squares / Math.max(1, count);
  return means.map((mean, a) => {
    const trust = spread === 0 ? 1 : spread / (spread + chance / Math.max(1, counts[a]!));
    return middle + trust * (mean - middle);
  });
}

/** Most rows kept for neighbours. */
export const MOST_NEIGHBOURS = 10_000;

/** At most `most` rows, evenly spaced. */
export function everyNth(rows: Int32Array, most: number): Int32Array {
  const every = Math.ceil(rows.length / most);
  return rows.filter((_, i) => i % every === 0);
}
