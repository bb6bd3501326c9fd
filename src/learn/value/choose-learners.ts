/** Chooses the learners of a value policy, their settings and their shares by the error on held-out rows.
 *  In: encoded rows, the group of each row, options. Out: the parts of the policy. Draws nothing but the folds. */
import { given } from "../../base/index.ts";
import { compactRows, pickRows } from "../rows/index.ts";
import {
  dealFolds,
  type Folds,
  type HeldOut,
  holdOutOnce,
  type PolicyValue,
  sharesOf,
  valueOfChoices,
} from "./cross-validate.ts";
import { everyNth, MOST_NEIGHBOURS, meansOf, type ValueData, type ValueLearner } from "./learners.ts";
import {
  bestOf,
  DISTANCES,
  type LearnerOptions,
  type LinearLearner,
  LOGISTIC_PENALTY,
  tryFamilies,
  WORDS,
} from "./try-families.ts";

export interface ChosenPart {
  readonly learner: ValueLearner;
  readonly share: number;
  /** A solution of fewer rows, where there is one. */
  readonly from?: Float64Array | undefined;
}

export interface ChosenLearners {
  readonly parts: readonly ChosenPart[];
  readonly tried: readonly HeldOut[];
  /** Undefined where there were too few rows to hold any out. */
  readonly held?: { readonly folds: Folds; readonly predictions: Float64Array; readonly value: PolicyValue };
}

const FOLDS = 4;
/** Outcomes that settings are tried on; the last fit takes all rows. */
const TRIED_OUTCOMES = 16_000;
const TRIED_ROWS = 6_000;
/** With this many times the tried rows, shares are found by models of the others. */
const LONG_LOG = 3;
/** Below this many rows nothing is held out: the cautious settings are taken. */
export const LEAST_ROWS = 40;
const CAUTIOUS = 10;
/** A part that would hardly speak is left out. */
const LEAST_SHARE = 0.05;

export function chooseLearners(
  whole: ValueData,
  groups: readonly string[],
  options: LearnerOptions,
): ChosenLearners {
  if (new Set(groups).size < LEAST_ROWS) {
    const learner = cautious(options);
    return { parts: [{ learner, share: 1 }], tried: [] };
  }
  const { data, folds } = trialOf(whole, groups, options.seed);
  const isLong = groups.length >= LONG_LOG * folds.rows.length;
  const held = tryFamilies(data, folds, { ...options, isLong });
  const tried = held.flatMap(({ all }) => all).sort((a, b) => a.error - b.error);
  const best = held.map((each) => (isLong ? onLongLog(whole, folds, each.best.learner, options) : each.best));
  const means = taughtMeans(whole, folds, isLong);
  const shares = options.kind === "auto" ? sharesOf(data, folds, best, means) : best.map(() => 1);
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

/** The rows that settings are tried on. */
function trialOf(whole: ValueData, groups: readonly string[], seed: bigint) {
  const perRow = whole.outcomes.target.length / groups.length;
  const most = Math.min(TRIED_ROWS, Math.ceil(TRIED_OUTCOMES / perRow));
  const folds = dealFolds(groups, { count: FOLDS, most, seed });
  // Words of other rows have the weight 0 in every fold: without their columns the solvers' vectors are short.
  const { rows, columns } = compactRows(pickRows(whole.rows, folds.rows));
  const blocks = whole.blocks && Uint8Array.from(columns, (column) => whole.blocks![column]!);
  return { data: { ...whole, rows, blocks }, folds };
}

/** The best linear learner on held-out rows: ridge, or logistic with the penalty that matches the best one of ridge. */
export function chooseLinear(data: ValueData, groups: readonly string[], seed: bigint): LinearLearner {
  const chosen = chooseLearners(data, groups, { kind: "ridge", seed });
  const ridge = chosen.parts[0]!.learner as LinearLearner;
  if (chosen.held === undefined) return ridge;
  const l2 = ridge.penalties.own * LOGISTIC_PENALTY;
  const [logistic] = chooseLearners(data, groups, { kind: "logistic", l2, seed }).tried;
  return logistic!.error < chosen.tried[0]!.error ? (logistic!.learner as LinearLearner) : ridge;
}

/** What a learner is worth with the rows of a long log: taught by all that were not tried on. Models of the tried rows alone
 *  would not show what shares the last ones deserve. */
function onLongLog(data: ValueData, folds: Folds, learner: ValueLearner, { l2 }: LearnerOptions): HeldOut {
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

/** Of each fold, the means of the rows that its models learned from. */
function taughtMeans(whole: ValueData, folds: Folds, isLong: boolean): Float64Array[] {
  const folded = Array.from({ length: folds.count }, (_, f) => f);
  if (isLong) {
    const means = meansOf(whole, untried(whole, folds));
    return folded.map(() => means);
  }
  return folded.map((f) =>
    meansOf(
      whole,
      folds.rows.filter((_, i) => folds.fold[i] !== f),
    ),
  );
}

function untried({ outcomes }: ValueData, folds: Folds): Int32Array {
  const isTried = new Set(folds.rows);
  return Int32Array.from(outcomes.start.keys())
    .slice(0, -1)
    .filter((r) => !isTried.has(r));
}

/** More rows carry more weights. */
function lighter(learner: Exclude<ValueLearner, { kind: "knn" }>): ValueLearner {
  const { own, shared } = learner.penalties;
  const less = { own: own / 3, ...(shared === undefined ? {} : { shared: shared / 3 }) };
  return { ...learner, penalties: { ...learner.penalties, ...less } };
}

function cautious({ kind, l2, k }: LearnerOptions): ValueLearner {
  if (kind === "knn") return { kind, k: k ?? 10, measures: DISTANCES[0] };
  return { kind: kind === "logistic" ? kind : "ridge", penalties: { own: l2 ?? CAUTIOUS, ...WORDS } };
}

function mixed(
  { arms }: ValueData,
  folds: Folds,
  {
    best,
    shares,
    means,
  }: { best: readonly HeldOut[]; shares: readonly number[]; means: readonly Float64Array[] },
): Float64Array {
  return Float64Array.from({ length: folds.rows.length * arms }, (_, i) => {
    const mean = means[folds.fold[Math.floor(i / arms)]!]![i % arms]!;
    return best.reduce((sum, { predictions }, m) => sum + shares[m]! * (predictions[i]! - mean), mean);
  });
}

export function nameOf(learner: ValueLearner): string {
  if (learner.kind === "knn")
    return `knn k=${learner.k}${learner.measures === 1 ? "" : ` measures=${learner.measures}`}`;
  const { own, shared, pairs, measures } = learner.penalties;
  const others = Object.entries({
    ...given({ shared, pairs: pairs && pairs * own, measures: measures && measures * own }),
  });
  return [`${learner.kind} l2=${own}`, ...others.map(([name, l2]) => `${name}=${l2}`)].join(" ");
}
