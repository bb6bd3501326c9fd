/** Chooses settings and shares of learners by their predictions of unseen rows.
 *  In: encoded rows with outcomes, groups that stay together. Out: held-out predictions, their error, and their value
 *  as a policy. With full information the error is the error of differences between candidates,
 *  which decide the choice. */
import { rngFrom } from "../../base/index.ts";
import {
  neighbourPredictor,
  predictorOf,
  type RowPredictor,
  type ValueData,
  type ValueLearner,
} from "./learners.ts";

export interface Folds {
  /** Numbers of the rows in the folds, ascending. */
  readonly rows: Int32Array;
  /** The fold of each of `rows`. */
  readonly fold: Int32Array;
  readonly count: number;
}

/** Predictions of every candidate at every row of the folds, by models that have not seen its group. */
export interface HeldOut {
  readonly learner: ValueLearner;
  readonly predictions: Float64Array;
  readonly error: number;
  /** Start for a solver that learns from more rows. */
  readonly state?: Float64Array | undefined;
}

/** Assigns groups to folds at random. Takes whole groups until `most` rows are reached. */
export function dealFolds(
  groups: readonly string[],
  { count, most, seed }: { count: number; most: number; seed: bigint },
): Folds {
  const order = rngFrom(seed)
    .split("folds")
    .shuffle([...new Set(groups)].sort());
  const sizes = new Map<string, number>();
  for (const group of groups) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  const folds = new Map<string, number>();
  let taken = 0;
  for (const [i, group] of order.entries()) {
    if (taken >= most) break;
    folds.set(group, i % count);
    taken += sizes.get(group)!;
  }
  const rows = Int32Array.from(groups.flatMap((group, r) => (folds.has(group) ? [r] : [])));
  return { rows, fold: Int32Array.from(rows, (r) => folds.get(groups[r]!)!), count };
}

/** Held-out predictions for several settings of one kind of learner, on the same folds.
 *  All numbers of neighbours share one search. */
export function holdOut(data: ValueData, folds: Folds, learners: readonly ValueLearner[]): HeldOut[] {
  const ks = learners.flatMap((each) => (each.kind === "knn" ? [each.k] : []));
  if (ks.length > 0) {
    const found = predictFolds(data, folds, {
      blocks: ks.length,
      make: (picked) => neighbourPredictor(data, ks, picked),
    });
    return learners.map((learner, j) => heldOut(data, folds, learner, found[j]!));
  }
  // Along the path of penalties, each solution starts from the previous one.
  const states = new Map<number, Float64Array>();
  return learners.map((learner) => {
    const make = (picked: Int32Array, fold: number) => {
      const { predict, state } = predictorOf(data, learner, { picked, from: states.get(fold), rough: true });
      if (state !== undefined) states.set(fold, state);
      return predict;
    };
    return heldOut(data, folds, learner, predictFolds(data, folds, { blocks: 1, make })[0]!);
  });
}

/** Predictions of one learner, trained on the picked rows, for the rows of the folds. The two sets must be disjoint. */
export function holdOutOnce(
  data: ValueData,
  folds: Folds,
  { learner, picked, from }: { learner: ValueLearner; picked: Int32Array; from?: Float64Array | undefined },
): HeldOut {
  const { predict, state } = predictorOf(data, learner, { picked, from, rough: true });
  const predictions = new Float64Array(folds.rows.length * data.arms);
  const scratch = new Float64Array(data.arms);
  folds.rows.forEach((r, i) => {
    predict(r, scratch);
    predictions.set(scratch, i * data.arms);
  });
  return { ...heldOut(data, folds, learner, predictions), state };
}

function heldOut(data: ValueData, folds: Folds, learner: ValueLearner, predictions: Float64Array): HeldOut {
  return { learner, predictions, error: errorOf(data, folds, predictions) };
}

/** One matrix (rows × candidates) for each block that the predictor writes. */
function predictFolds(
  { arms }: ValueData,
  folds: Folds,
  { blocks, make }: { blocks: number; make: (picked: Int32Array, fold: number) => RowPredictor },
): Float64Array[] {
  const all = Array.from({ length: blocks }, () => new Float64Array(folds.rows.length * arms));
  const scratch = new Float64Array(blocks * arms);
  for (let f = 0; f < folds.count; f++) {
    const predict = make(
      folds.rows.filter((_, i) => folds.fold[i] !== f),
      f,
    );
    folds.rows.forEach((r, i) => {
      if (folds.fold[i] !== f) return;
      predict(r, scratch);
      for (const [j, each] of all.entries()) each.set(scratch.subarray(j * arms, (j + 1) * arms), i * arms);
    });
  }
  return all;
}

/** Non-negative least squares of the outcomes on the held-out predictions, all as departures from the candidates'
 *  means. A learner without predictive power gets share 0, and only the means remain. The means of a fold come from its
 *  models' training rows. Means of all rows would include the outcomes to predict. In a fold above those means, the
 *  models learned values below them. With many candidates and few outcomes, every share would then become 0. */
export function sharesOf(
  data: ValueData,
  folds: Folds,
  held: readonly HeldOut[],
  meansOfFold: readonly Float64Array[],
): number[] {
  const count = held.length;
  const gram = Array.from({ length: count }, () => new Float64Array(count));
  const response = new Float64Array(count);
  const values = new Float64Array(count);
  let squares = 0;
  eachOutcome(data, folds, (i, arm, target, centre) => {
    const means = meansOfFold[folds.fold[i]!]!;
    held.forEach(({ predictions }, m) => {
      values[m] = predictions[i * data.arms + arm]! - means[arm]! - centre(predictions, means);
    });
    const wanted = target - means[arm]! - centre(undefined, means);
    squares += wanted * wanted;
    for (let m = 0; m < count; m++) {
      response[m] = response[m]! + values[m]! * wanted;
      for (let n = 0; n < count; n++) gram[m]![n] = gram[m]![n]! + values[m]! * values[n]!;
    }
  });
  return solveNonNegative(gram, response, NO_DEPARTURE * squares);
}

/** The mean squared error of outcomes; with full information, of the differences within a row. */
function errorOf(data: ValueData, folds: Folds, predictions: Float64Array): number {
  let [sum, count] = [0, 0];
  eachOutcome(data, folds, (i, arm, target, centre) => {
    const error = target - predictions[i * data.arms + arm]! - centre(undefined) + centre(predictions);
    sum += error * error;
    count++;
  });
  return sum / Math.max(1, count);
}

/** `centre(p)`: the mean of the predictions of a row's outcomes, minus `minus`. Without p: the mean of the outcomes.
 *  0 if only one outcome is known. */
type RowCentre = (predictions: Float64Array | undefined, minus?: Float64Array) => number;

function eachOutcome(
  { outcomes, arms }: ValueData,
  folds: Folds,
  visit: (i: number, arm: number, target: number, centre: RowCentre) => void,
): void {
  const { start, arm, target, full } = outcomes;
  folds.rows.forEach((r, i) => {
    const [from, to] = [start[r]!, start[r + 1]!];
    const centre: RowCentre = (predictions, minus) => {
      if (!full) return 0;
      let sum = 0;
      for (let t = from; t < to; t++) {
        const a = arm[t]!;
        sum += (predictions === undefined ? target[t]! : predictions[i * arms + a]!) - (minus?.[a] ?? 0);
      }
      return sum / (to - from);
    };
    for (let t = from; t < to; t++) visit(i, arm[t]!, target[t]!, centre);
  });
}

const SWEEPS = 500;
/** Smaller squared departures, as a share of the outcomes' squares, are rounding errors. Example: with fewer rows than
 *  neighbours, every prediction is the mean of all outcomes. */
const NO_DEPARTURE = 1e-12;

/** Coordinate descent on a small convex problem. */
function solveNonNegative(gram: readonly Float64Array[], response: Float64Array, least: number): number[] {
  const shares = new Array<number>(response.length).fill(0);
  for (let sweep = 0; sweep < SWEEPS; sweep++)
    for (let m = 0; m < shares.length; m++) {
      const own = gram[m]![m]!;
      if (own <= least) continue;
      let rest = response[m]!;
      for (let n = 0; n < shares.length; n++) if (n !== m) rest -= gram[m]![n]! * shares[n]!;
      shares[m] = Math.max(0, rest / own);
    }
  return shares;
}

/** The arm with the highest score among those that the row offered; −1 if it offered none. */
export function bestArm(data: ValueData, row: number, score: (arm: number) => number): number {
  let best = -1;
  for (let a = 0; a < data.arms; a++)
    if (isOffered(data, row, a) && (best < 0 || score(a) > score(best))) best = a;
  return best;
}

export function isOffered({ outcomes: { offered }, arms }: ValueData, row: number, arm: number): boolean {
  return offered === undefined || offered[row * arms + arm] === 1;
}

export interface PolicyValue {
  /** Mean reward of taking the best prediction: exact, or self-normalised by the logged probabilities. */
  readonly value: number;
  /** Mean reward of always taking the candidate that is best in the folds. */
  readonly single: number;
  readonly rows: number;
}

export function valueOfChoices(data: ValueData, folds: Folds, predictions: Float64Array): PolicyValue {
  const { arms } = data;
  const chosen = Int32Array.from(folds.rows, (r, i) => bestArm(data, r, (a) => predictions[i * arms + a]!));
  const singles = Array.from({ length: arms }, (_, a) => meanReward(data, folds, () => a));
  return {
    value: meanReward(data, folds, (i) => chosen[i]!),
    single: Math.max(...singles.filter((each) => !Number.isNaN(each))),
    rows: folds.rows.length,
  };
}

function meanReward({ outcomes }: ValueData, folds: Folds, choose: (i: number) => number): number {
  let [top, bottom] = [0, 0];
  folds.rows.forEach((r, i) => {
    for (let t = outcomes.start[r]!; t < outcomes.start[r + 1]!; t++) {
      if (outcomes.arm[t] !== choose(i)) continue;
      top += outcomes.weight[t]! * outcomes.target[t]!;
      bottom += outcomes.weight[t]!;
    }
  });
  return bottom === 0 ? Number.NaN : top / bottom;
}
