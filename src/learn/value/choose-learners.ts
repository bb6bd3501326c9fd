/** Chooses the learners of a value policy, their settings and their shares by the error on held-out rows.
 *  In: encoded rows, the group of each row, options. Out: the parts of the policy. Only the folds are random. */
import {
  dealFolds,
  type Folds,
  type HeldOut,
  holdOutOnce,
  type PolicyValue,
  sharesOf,
  valueOfChoices,
} from "./cross-validate.ts";
import {
  everyNth,
  MOST_NEIGHBOURS,
  meansOf,
  steadyMeans,
  type ValueData,
  type ValueLearner,
  viewOf,
} from "./learners.ts";
import {
  bestOf,
  type LearnerOptions,
  type LinearLearner,
  LOGISTIC_PENALTY,
  tryFamilies,
} from "./try-families.ts";

export interface ChosenPart {
  readonly learner: ValueLearner;
  readonly share: number;
  /** A solution from fewer rows, as a start; undefined if there is none. */
  readonly from?: Float64Array | undefined;
}

export interface ChosenLearners {
  readonly parts: readonly ChosenPart[];
  readonly tried: readonly HeldOut[];
  /** Undefined if there were too few rows to hold any out. */
  readonly held?: { readonly folds: Folds; readonly predictions: Float64Array; readonly value: PolicyValue };
}

const FOLDS = 4;
/** Most outcomes and rows for trying settings. The final fit uses all rows. */
const TRIED_OUTCOMES = 16_000;
const TRIED_ROWS = 6_000;
/** A log with this many times the tried rows is long: shares then come from models of the untried rows. */
const LONG_LOG = 3;
/** With fewer tasks no rows are held out, and the cautious settings are used. */
export const LEAST_TASKS = 40;
const CAUTIOUS = { own: 10 } as const;
/** A part with a smaller share is left out. */
const LEAST_SHARE = 0.05;

export function chooseLearners(
  data: ValueData,
  groups: readonly string[],
  options: LearnerOptions,
): ChosenLearners {
  if (new Set(groups).size < LEAST_TASKS) {
    const learner = cautious(options);
    return { parts: [{ learner, share: 1 }], tried: [] };
  }
  const perRow = data.outcomes.target.length / groups.length;
  const most = Math.min(TRIED_ROWS, Math.ceil(TRIED_OUTCOMES / perRow));
  const folds = dealFolds(groups, { count: FOLDS, most, seed: options.seed });
  const isLong = groups.length >= LONG_LOG * folds.rows.length;
  const held = tryFamilies(data, folds, { ...options, isLong });
  const tried = held.flatMap(({ all }) => all).sort((a, b) => a.error - b.error);
  const best = held.map((each) => (isLong ? onLongLog(data, folds, each.best.learner, options) : each.best));
  const isMixed = options.kind === "auto";
  const means = taughtMeans(data, folds, { isLong, isMixed });
  const shares = isMixed
    ? sharesOf(
        data,
        folds,
        best,
        means.map(({ plain }) => plain),
      )
    : best.map(() => 1);
  const parts = best
    .map(({ learner, state }, m) => ({ learner, share: shares[m]!, from: state }))
    .filter(({ share }) => share >= LEAST_SHARE);
  const predictions = mixed(data, folds, { best, shares, means });
  const value = valueOfChoices(data, folds, predictions);
  return {
    parts: parts.length === 0 ? [{ learner: best[0]!.learner, share: 0 }] : parts,
    tried,
    held: { folds, predictions, value },
  };
}

/** For each fold, the means of its models' training rows (`plain`),
 *  and the means to which a mix adds its parts (`base`). */
interface FoldMeans {
  readonly plain: Float64Array;
  readonly base: Float64Array;
}

function taughtMeans(
  data: ValueData,
  folds: Folds,
  { isLong, isMixed }: { isLong: boolean; isMixed: boolean },
): FoldMeans[] {
  const rest = isLong ? untried(data, folds) : undefined;
  return Array.from({ length: folds.count }, (_, f) => {
    const taught = rest ?? folds.rows.filter((_row, i) => folds.fold[i] !== f);
    const plain = meansOf(data, taught);
    return { plain, base: isMixed ? steadyMeans(data, taught, plain) : plain };
  });
}

function untried({ outcomes }: ValueData, folds: Folds): Int32Array {
  const isTried = new Set(folds.rows);
  return Int32Array.from(outcomes.start.keys())
    .slice(0, -1)
    .filter((r) => !isTried.has(r));
}

/** The best linear learner on held-out rows:
 *  ridge, or logistic with the penalty that matches the best ridge penalty. */
export function chooseLinear(data: ValueData, groups: readonly string[], seed: bigint): LinearLearner {
  const chosen = chooseLearners(data, groups, { kind: "ridge", seed });
  const ridge = chosen.parts[0]!.learner as LinearLearner;
  if (chosen.held === undefined) return ridge;
  const l2 = ridge.penalties.own * LOGISTIC_PENALTY;
  const [logistic] = chooseLearners(data, groups, { kind: "logistic", l2, seed }).tried;
  return logistic!.error < chosen.tried[0]!.error ? (logistic!.learner as LinearLearner) : ridge;
}

/** The held-out predictions of a learner trained on all untried rows of a long log. Models of the tried rows alone
 *  would not show the shares that the final models deserve. */
function onLongLog(whole: ValueData, folds: Folds, learner: ValueLearner, { l2 }: LearnerOptions): HeldOut {
  const data = viewOf(whole, learner);
  const rest = untried(data, folds);
  const settings = learner.kind === "knn" || l2 !== undefined ? [learner] : [learner, lighter(learner)];
  const picked = learner.kind === "knn" ? everyNth(rest, MOST_NEIGHBOURS) : rest;
  let from: Float64Array | undefined;
  const all = settings.map((each) => {
    const held = holdOutOnce(data, folds, { learner: each, picked, from });
    from = held.state;
    return held;
  });
  return bestOf(all).best;
}

/** The learner with a third of its penalties: more rows support larger weights. */
function lighter(learner: Exclude<ValueLearner, { kind: "knn" }>): ValueLearner {
  const { own, shared } = learner.penalties;
  return { ...learner, penalties: { own: own / 3, ...(shared === undefined ? {} : { shared: shared / 3 }) } };
}

function cautious({ kind, l2, k }: LearnerOptions): ValueLearner {
  if (kind === "knn") return { kind, k: k ?? 10, reads: "words" };
  const penalties = l2 === undefined ? CAUTIOUS : { own: l2 };
  return { kind: kind === "logistic" ? kind : "ridge", penalties, reads: "words" };
}

function mixed(
  { arms }: ValueData,
  folds: Folds,
  {
    best,
    shares,
    means,
  }: { best: readonly HeldOut[]; shares: readonly number[]; means: readonly FoldMeans[] },
): Float64Array {
  return Float64Array.from({ length: folds.rows.length * arms }, (_, i) => {
    const { plain, base } = means[folds.fold[Math.floor(i / arms)]!]!;
    const mean = plain[i % arms]!;
    return best.reduce(
      (sum, { predictions }, m) => sum + shares[m]! * (predictions[i]! - mean),
      base[i % arms]!,
    );
  });
}

export function nameOf(learner: ValueLearner): string {
  const reads = learner.reads === "all" ? "" : ` ${learner.reads}`;
  if (learner.kind === "knn") return `knn k=${learner.k}${reads}`;
  const { own, shared } = learner.penalties;
  return `${learner.kind} l2=${own}${shared === undefined ? "" : ` shared=${shared}`}${reads}`;
}
