/** Chooses the learners of a value policy, their settings and their shares by the error on held-out rows.
 *  In: encoded rows, the group of each row, options. Out: the parts of the policy. Draws nothing but the folds. */
import { compactRows, pickRows } from "../rows/index.ts";
import {
  dealFolds,
  type Folds,
  type HeldOut,
  holdOut,
  holdOutOnce,
  type PolicyValue,
  sharesOf,
  valueOfChoices,
} from "./cross-validate.ts";
import { everyNth, MOST_NEIGHBOURS, meansOf, type ValueData, type ValueLearner } from "./learners.ts";

export type ValueKind = "auto" | "ridge" | "logistic" | "knn";

export interface LearnerOptions {
  readonly kind: ValueKind;
  /** λ of ridge and logistic (default: by cross-validation). */
  readonly l2?: number | undefined;
  /** Neighbours (default: by cross-validation). */
  readonly k?: number | undefined;
  readonly seed: bigint;
}

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

export type LinearLearner = Extract<ValueLearner, { kind: "ridge" | "logistic" }>;

const FOLDS = 4;
/** Outcomes that settings are tried on; the last fit takes all rows. */
const TRIED_OUTCOMES = 16_000;
const TRIED_ROWS = 6_000;
/** With this many times the tried rows, shares are found by models of the others. */
const LONG_LOG = 3;
/** Below this many rows nothing is held out: the cautious settings are taken. */
export const LEAST_ROWS = 40;
const CAUTIOUS = { own: 10 } as const;
/** The penalty of a logistic model that shrinks as much as 1 does in ridge: the curvature of its loss is at most a quarter. */
const LOGISTIC_PENALTY = 0.25;
/** A part that would hardly speak is left out. */
const LEAST_SHARE = 0.05;

export function chooseLearners(
  whole: ValueData,
  groups: readonly string[],
  options: LearnerOptions,
): ChosenLearners {
  const families = familiesOf(options);
  if (new Set(groups).size < LEAST_ROWS) {
    const learner = cautious(options);
    return { parts: [{ learner, share: 1 }], tried: [] };
  }
  const perRow = whole.outcomes.target.length / groups.length;
  const most = Math.min(TRIED_ROWS, Math.ceil(TRIED_OUTCOMES / perRow));
  const folds = dealFolds(groups, { count: FOLDS, most, seed: options.seed });
  // Words of other rows have the weight 0 in every fold: without their columns the solvers' vectors are short.
  const data = { ...whole, rows: compactRows(pickRows(whole.rows, folds.rows)).rows };
  const held = families.map((family) => {
    const plain = holdOut(data, folds, family);
    return bestOf([...plain, ...holdOut(data, folds, sharedVariants(data, bestOf(plain).best, options))]);
  });
  const tried = held.flatMap(({ all }) => all).sort((a, b) => a.error - b.error);
  const isLong = groups.length >= LONG_LOG * folds.rows.length;
  const best = held.map((each) => (isLong ? onLongLog(whole, folds, each.best.learner, options) : each.best));
  const means = meansOf(data, folds.rows);
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
  const isTried = new Set(folds.rows);
  const rest = Int32Array.from(data.outcomes.start.keys())
    .slice(0, -1)
    .filter((r) => !isTried.has(r));
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

/** More rows carry more weights. */
function lighter(learner: Exclude<ValueLearner, { kind: "knn" }>): ValueLearner {
  const { own, shared } = learner.penalties;
  return { ...learner, penalties: { own: own / 3, ...(shared === undefined ? {} : { shared: shared / 3 }) } };
}

/** Settings of one learner each; `auto` takes the best of every family and gives it a share. */
function familiesOf({ kind, l2, k }: LearnerOptions): ValueLearner[][] {
  const penalties = (l2 === undefined ? [100, 30, 10, 3, 1] : [l2]).map((own) => ({ own }));
  const ridge = penalties.map((each): ValueLearner => ({ kind: "ridge", penalties: each }));
  const logistic = penalties.map(
    ({ own }): ValueLearner => ({ kind: "logistic", penalties: { own: l2 ?? own * LOGISTIC_PENALTY } }),
  );
  const knn = (k === undefined ? [5, 10, 40] : [k]).map((each): ValueLearner => ({ kind: "knn", k: each }));
  switch (kind) {
    case "auto":
      return [ridge, knn];
    case "ridge":
      return [ridge];
    case "logistic":
      return [logistic];
    case "knn":
      return [knn];
    default:
      return kind satisfies never;
  }
}

/** With a part that all candidates share: worth a try where each has few outcomes of its own. */
function sharedVariants(
  { arms, outcomes }: ValueData,
  { learner }: HeldOut,
  { l2 }: LearnerOptions,
): ValueLearner[] {
  if (learner.kind !== "ridge" || l2 !== undefined || arms < 3 || outcomes.full) return [];
  const { own } = learner.penalties;
  return [own, 3 * own].map((each) => ({ kind: "ridge", penalties: { own: each, shared: own / 3 } }));
}

function cautious({ kind, l2, k }: LearnerOptions): ValueLearner {
  if (kind === "knn") return { kind, k: k ?? 10 };
  return { kind: kind === "logistic" ? kind : "ridge", penalties: l2 === undefined ? CAUTIOUS : { own: l2 } };
}

function bestOf(all: readonly HeldOut[]): { best: HeldOut; all: readonly HeldOut[] } {
  return { best: all.reduce((best, each) => (each.error < best.error ? each : best)), all };
}

function mixed(
  { arms }: ValueData,
  folds: Folds,
  { best, shares, means }: { best: readonly HeldOut[]; shares: readonly number[]; means: Float64Array },
): Float64Array {
  return Float64Array.from({ length: folds.rows.length * arms }, (_, i) => {
    const mean = means[i % arms]!;
    return best.reduce((sum, { predictions }, m) => sum + shares[m]! * (predictions[i]! - mean), mean);
  });
}

export function nameOf(learner: ValueLearner): string {
  if (learner.kind === "knn") return `knn k=${learner.k}`;
  const { own, shared } = learner.penalties;
  return `${learner.kind} l2=${own}${shared === undefined ? "" : ` shared=${shared}`}`;
}
