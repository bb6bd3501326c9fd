/** Trains a value policy: it predicts the reward of every candidate and takes the best.
 *  In: decisions with the outcome of the chosen candidate, or of all. Out: a "value" model and how it was chosen.
 *  Training = f(data, options, seed): rows are taken by id, solvers draw nothing, the seed deals the folds alone. */
import { given, RollbookError } from "../../base/index.ts";
import type { PolicyModel, Tensors, ValueSpec } from "../../policy/index.ts";
import {
  compactRows,
  type DecisionData,
  digestEmbeddings,
  type OutcomeRow,
  outcomesOf,
  pickRows,
} from "../rows/index.ts";
import { pointAt, type SweepPoint, sweepWeights, weightForBudget } from "./cost-weight.ts";
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
import { deriveValueSpec, type EncodedRows, encodeRows } from "./fit-columns.ts";
import {
  fitLogistic,
  fitRidge,
  meansOf,
  neighbourRows,
  rangeOf,
  type ValueData,
  type ValueLearner,
} from "./learners.ts";
import type { LinearValues } from "./solve-ridge.ts";

export type ValueKind = "auto" | "ridge" | "logistic" | "knn";

interface ValueOptions {
  readonly kind: ValueKind;
  readonly spec?: ValueSpec | undefined;
  /** The rows carry embeddings of this model and length. */
  readonly embedding?: ValueSpec["embedding"];
  /** λ of ridge and logistic (default: by cross-validation). */
  readonly l2?: number | undefined;
  /** Neighbours (default: by cross-validation). */
  readonly k?: number | undefined;
  /** Maximises quality − costWeight·cost (default: the reward as it was logged). */
  readonly costWeight?: number | undefined;
  /** The mean cost that must be kept: the cost weight follows from it. */
  readonly meanCost?: number | undefined;
  readonly seed: bigint;
}

export interface ValueReport {
  readonly fullInformation: boolean;
  readonly rows: number;
  readonly outcomes: number;
  readonly features: number;
  /** Learners that were tried, by error on held-out rows, best first. */
  readonly tried: readonly { readonly learner: string; readonly error: number }[];
  readonly parts: readonly { readonly learner: string; readonly share: number }[];
  /** On rows the models had not seen; undefined where there were too few to hold any out. */
  readonly crossValidated?: PolicyValue;
  readonly costWeight?: number;
  /** Quality and cost on held-out rows: at the weight taken, then from quality alone to the cheapest choices. */
  readonly sweep?: readonly SweepPoint[];
}

export interface ValueTrained {
  readonly model: PolicyModel;
  readonly report: ValueReport;
}

const FOLDS = 4;
/** Outcomes that settings are tried on; the last fit takes all rows. */
const TRIED_OUTCOMES = 16_000;
const TRIED_ROWS = 6_000;
/** With this many times the tried rows, shares are found by models of the others. */
const LONG_LOG = 3;
/** Below this many rows nothing is held out: the cautious settings are taken. */
const LEAST_ROWS = 40;
const CAUTIOUS = { own: 10 } as const;
/** The penalty of a logistic model that shrinks as much as 1 does in ridge: the curvature of its loss is at most a quarter. */
const LOGISTIC_PENALTY = 0.25;
/** Rows that neighbours are kept of. */
const MOST_NEIGHBOURS = 10_000;
/** A part that would hardly speak is left out. */
const LEAST_SHARE = 0.05;

export function trainValue(data: DecisionData, options: ValueOptions): ValueTrained {
  const { kind, l2, k, costWeight, meanCost } = options;
  const weighed = costWeight !== undefined || meanCost !== undefined;
  const rows = data.rows as readonly OutcomeRow[];
  const outcomes = outcomesOf(rows, weighed ? "quality" : "reward");
  const spec = options.spec ?? deriveValueSpec(outcomes.rows, options.embedding);
  const encoded = encodeRows(outcomes.rows, spec);
  const groups = outcomes.rows.map(groupOf);
  const value: ValueData = { rows: encoded.rows, outcomes, arms: outcomes.arms.length };
  const chosen = chooseLearners(value, groups, options);
  const all = Int32Array.from(outcomes.rows.keys());
  const means = meansOf(value, all);
  const { low, high } = rangeOf(outcomes.target);
  const cost = weighed
    ? learnCost({ ...value, outcomes: outcomesOf(rows, "cost") }, groups, options)
    : undefined;
  const budget = cost === undefined ? undefined : budgetOf({ value, chosen, cost }, options);
  return {
    model: {
      kind: "value",
      spec,
      arms: outcomes.arms,
      config: {
        ...{ algorithm: kind, data: data.digest, measure: weighed ? "quality" : "reward" },
        ...given({ l2, k, costWeight, meanCost, embeddings: digestEmbeddings(outcomes.rows) }),
        parts: chosen.parts.map(({ learner, share }) => ({ learner: nameOf(learner), share })),
      },
      settings: {
        ...{ low, high, range: high > low ? high - low : 1 },
        ...partSettings(chosen.parts),
        ...(budget === undefined ? {} : { cost_weight: budget.costWeight }),
      },
      tensors: {
        ...columnTensors(encoded),
        ...partTensors(value, chosen.parts, { all, means }),
        ...cost?.tensors,
      },
    },
    report: {
      fullInformation: outcomes.full,
      rows: outcomes.rows.length,
      outcomes: outcomes.target.length,
      features: encoded.rows.size,
      tried: chosen.tried.map(({ learner, error }) => ({ learner: nameOf(learner), error })),
      parts: chosen.parts.map(({ learner, share }) => ({ learner: nameOf(learner), share })),
      ...given({ crossValidated: chosen.held?.value }),
      ...budget,
    },
  };
}

interface LearnedCost {
  readonly data: ValueData;
  readonly tensors: Tensors;
  readonly chosen: ChosenLearners;
}

/** Costs are predicted by ridge alone: they follow prices and lengths. */
function learnCost(data: ValueData, groups: readonly string[], { seed }: ValueOptions): LearnedCost {
  const chosen = chooseLearners(data, groups, { kind: "ridge", seed });
  const [{ learner }] = chosen.parts as readonly [ChosenPart];
  const { penalties } = learner as LinearLearner;
  const { weights, bias } = fitRidge(data, penalties, { picked: Int32Array.from(groups.keys()) });
  const shape = [data.rows.size, data.arms];
  return {
    data,
    chosen,
    tensors: { cost_weights: { shape, data: weights }, cost_bias: { shape: [data.arms], data: bias } },
  };
}

type LinearLearner = Extract<ValueLearner, { kind: "ridge" | "logistic" }>;

/** The best linear learner on held-out rows: ridge, or logistic with the penalty that matches the best one of ridge. */
export function chooseLinear(data: ValueData, groups: readonly string[], seed: bigint): LinearLearner {
  const chosen = chooseLearners(data, groups, { kind: "ridge", seed });
  const ridge = chosen.parts[0]!.learner as LinearLearner;
  if (chosen.held === undefined) return ridge;
  const l2 = ridge.penalties.own * LOGISTIC_PENALTY;
  const [logistic] = chooseLearners(data, groups, { kind: "logistic", l2, seed }).tried;
  return logistic!.error < chosen.tried[0]!.error ? (logistic!.learner as LinearLearner) : ridge;
}

export function linearTensors(
  kind: LinearLearner["kind"],
  { rows, arms }: ValueData,
  { weights, bias }: LinearValues,
): Tensors {
  const name = kind === "ridge" ? "linear" : kind;
  return {
    [`${name}_weights`]: { shape: [rows.size, arms], data: weights },
    [`${name}_bias`]: { shape: [arms], data: bias },
  };
}

/** The cost weight that was asked for, or that keeps the budget on rows the models had not seen. */
function budgetOf(
  { value, chosen, cost }: { value: ValueData; chosen: ChosenLearners; cost: LearnedCost },
  { costWeight = 0, meanCost }: ValueOptions,
): Pick<ValueReport, "costWeight" | "sweep"> & { costWeight: number } {
  if (chosen.held === undefined || cost.chosen.held === undefined) {
    if (meanCost === undefined) return { costWeight };
    throw new RollbookError(
      "too-few-units",
      { rows: value.outcomes.start.length - 1, least: LEAST_ROWS },
      `a budget needs at least ${LEAST_ROWS} tasks to be calibrated on. Log more, or state --cost-weight.`,
    );
  }
  const weighed = {
    folds: chosen.held.folds,
    quality: { data: value, predictions: chosen.held.predictions },
    cost: { data: cost.data, predictions: cost.chosen.held.predictions },
  };
  const weight = meanCost === undefined ? costWeight : weightForBudget(weighed, meanCost);
  return { costWeight: weight, sweep: [pointAt(weighed, weight), ...sweepWeights(weighed)] };
}

interface ChosenPart {
  readonly learner: ValueLearner;
  readonly share: number;
  /** A solution of fewer rows, where there is one. */
  readonly from?: Float64Array | undefined;
}

interface ChosenLearners {
  readonly parts: readonly ChosenPart[];
  readonly tried: readonly HeldOut[];
  /** Undefined where there were too few rows to hold any out. */
  readonly held?: { readonly folds: Folds; readonly predictions: Float64Array; readonly value: PolicyValue };
}

function chooseLearners(whole: ValueData, groups: readonly string[], options: ValueOptions): ChosenLearners {
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

/** What a learner is worth with the rows of a long log: taught by all that were not tried on. Models of the tried rows alone
 *  would not show what shares the last ones deserve. */
function onLongLog(data: ValueData, folds: Folds, learner: ValueLearner, { l2 }: ValueOptions): HeldOut {
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

/** At most `most` rows, evenly over all. */
function everyNth(rows: Int32Array, most: number): Int32Array {
  const every = Math.ceil(rows.length / most);
  return rows.filter((_, i) => i % every === 0);
}

/** Settings of one learner each; `auto` takes the best of every family and gives it a share. */
function familiesOf({ kind, l2, k }: ValueOptions): ValueLearner[][] {
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
  { l2 }: ValueOptions,
): ValueLearner[] {
  if (learner.kind !== "ridge" || l2 !== undefined || arms < 3 || outcomes.full) return [];
  const { own } = learner.penalties;
  return [own, 3 * own].map((each) => ({ kind: "ridge", penalties: { own: each, shared: own / 3 } }));
}

function cautious({ kind, l2, k }: ValueOptions): ValueLearner {
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

/** Rows of one task, or of one prompt, stay together. */
function groupOf(row: OutcomeRow & { readonly task?: string }): string {
  return row.task ?? row.id;
}

function nameOf(learner: ValueLearner): string {
  if (learner.kind === "knn") return `knn k=${learner.k}`;
  const { own, shared } = learner.penalties;
  return `${learner.kind} l2=${own}${shared === undefined ? "" : ` shared=${shared}`}`;
}

function partSettings(parts: readonly ChosenPart[]): Record<string, number> {
  const settings: Record<string, number> = {};
  for (const { learner, share } of parts) {
    if (learner.kind === "logistic") settings.logistic_share = share;
    if (learner.kind === "knn") {
      settings.neighbour_share = share;
      settings.neighbours = learner.k;
    }
  }
  return settings;
}

/** The linear part carries what the others leave of the means: Σ shares·(part − mean) + mean. */
function partTensors(
  data: ValueData,
  parts: readonly ChosenPart[],
  { all, means }: { all: Int32Array; means: Float64Array },
): Tensors {
  const { arms, rows } = data;
  const left = 1 - parts.reduce((sum, { share }) => sum + share, 0);
  let bias = means.map((mean) => left * mean);
  let weights = new Float64Array(rows.size * arms);
  const tensors: Record<string, Tensors[string]> = { means: { shape: [arms], data: means } };
  for (const { learner, share, from } of parts) {
    if (learner.kind === "knn") Object.assign(tensors, neighbourTensors(data, all));
    else if (learner.kind === "logistic")
      Object.assign(
        tensors,
        linearTensors("logistic", data, fitLogistic(data, learner.penalties, { picked: all })),
      );
    else if (share > 0) {
      const fitted = fitRidge(data, learner.penalties, { picked: all, from });
      weights = fitted.weights.map((each) => share * each);
      bias = bias.map((each, a) => each + share * fitted.bias[a]!);
    }
  }
  return {
    ...tensors,
    linear_weights: { shape: [rows.size, arms], data: weights },
    linear_bias: { shape: [arms], data: bias },
  };
}

/** Of many rows every n-th is kept. */
function neighbourTensors(data: ValueData, all: Int32Array): Tensors {
  const { start, indices, values, outcomeRow, arm, target } = neighbourRows(
    data,
    everyNth(all, MOST_NEIGHBOURS),
  );
  return {
    near_start: { shape: [start.length], data: start },
    near_indices: { shape: [indices.length], data: indices },
    near_values: { shape: [values.length], data: values },
    near_row: { shape: [outcomeRow.length], data: outcomeRow },
    near_arm: { shape: [arm.length], data: arm },
    near_target: { shape: [target.length], data: target },
  };
}

export function columnTensors({ columns }: EncodedRows): Tensors {
  const { ids, idf, centre, factor, limit, squashed } = columns;
  return {
    columns: { shape: [ids.length], data: ids },
    column_idf: { shape: [idf.length], data: idf },
    dense_centre: { shape: [centre.length], data: centre },
    dense_factor: { shape: [factor.length], data: factor },
    dense_limit: { shape: [limit.length], data: limit },
    dense_squashed: { shape: [squashed.length], data: squashed },
  };
}
