/** Trains a value policy: it predicts the reward of every candidate and takes the best.
 *  In: decisions with the outcome of the chosen candidate, or of all. Out: a "value" model and a report of the choices.
 *  Training = f(data, options, seed):
 *  rows are sorted by id, solvers are deterministic, and only the folds use the seed. */
import { given, RollbookError } from "../../base/index.ts";
import type { PolicyModel, Tensors, ValueSpec } from "../../policy/index.ts";
import { type DecisionData, digestEmbeddings, type OutcomeRow, outcomesOf } from "../rows/index.ts";
import {
  type ChosenLearners,
  type ChosenPart,
  chooseLearners,
  LEAST_TASKS,
  nameOf,
} from "./choose-learners.ts";
import { pointAt, type SweepPoint, sweepWeights, weightForBudget } from "./cost-weight.ts";
import type { PolicyValue } from "./cross-validate.ts";
import { deriveValueSpec, encodeRows } from "./fit-columns.ts";
import { fitRidge, meansOf, rangeOf, steadyMeans, type ValueData, viewOf } from "./learners.ts";
import type { LearnerOptions, LinearLearner } from "./try-families.ts";
import { columnTensors, partSettings, partTensors } from "./value-tensors.ts";
import { viewsOf } from "./views.ts";

interface ValueOptions extends LearnerOptions {
  readonly spec?: ValueSpec | undefined;
  /** Model and length of the rows' embeddings. */
  readonly embedding?: ValueSpec["embedding"];
  /** Maximises quality − costWeight·cost (default: the reward as it was logged). */
  readonly costWeight?: number | undefined;
  /** The mean cost to keep. It determines the cost weight. */
  readonly meanCost?: number | undefined;
}

export interface ValueReport {
  readonly fullInformation: boolean;
  readonly rows: number;
  readonly outcomes: number;
  readonly features: number;
  /** All tried learners, by error on held-out rows, best first. */
  readonly tried: readonly { readonly learner: string; readonly error: number }[];
  readonly parts: readonly { readonly learner: string; readonly share: number }[];
  /** On rows that the models had not seen; undefined if there were too few rows to hold any out. */
  readonly crossValidated?: PolicyValue;
  readonly costWeight?: number;
  /** Quality and cost on held-out rows: first at the used weight, then from quality alone to the cheapest choices. */
  readonly sweep?: readonly SweepPoint[];
}

export interface ValueTrained {
  readonly model: PolicyModel;
  readonly report: ValueReport;
}

export function trainValue(data: DecisionData, options: ValueOptions): ValueTrained {
  const { kind, l2, k, costWeight, meanCost } = options;
  const weighed = costWeight !== undefined || meanCost !== undefined;
  const rows = data.rows as readonly OutcomeRow[];
  const outcomes = outcomesOf(rows, weighed ? "quality" : "reward");
  const spec = options.spec ?? deriveValueSpec(outcomes.rows, options.embedding);
  const encoded = encodeRows(outcomes.rows, spec, "own");
  const groups = outcomes.rows.map(groupOf);
  const value: ValueData = {
    ...{ rows: encoded.rows, views: viewsOf(spec, encoded.columns) },
    ...{ outcomes, arms: outcomes.arms.length },
  };
  const chosen = chooseLearners(value, groups, options);
  const all = Int32Array.from(outcomes.rows.keys());
  const means = meansOf(value, all);
  const base = kind === "auto" ? steadyMeans(value, all, means) : means;
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
        ...partTensors(value, chosen.parts, { all, means, base }),
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

/** Predicts costs by ridge only, because costs follow prices and lengths. */
function learnCost(data: ValueData, groups: readonly string[], { seed }: ValueOptions): LearnedCost {
  const chosen = chooseLearners(data, groups, { kind: "ridge", seed });
  const [{ learner }] = chosen.parts as readonly [ChosenPart];
  const { penalties } = learner as LinearLearner;
  const { weights, bias } = fitRidge(viewOf(data, learner), penalties, {
    picked: Int32Array.from(groups.keys()),
  });
  const shape = [data.rows.size, data.arms];
  return {
    data,
    chosen,
    tensors: { cost_weights: { shape, data: weights }, cost_bias: { shape: [data.arms], data: bias } },
  };
}

/** The given cost weight, or the weight that keeps the budget on rows that the models had not seen. */
function budgetOf(
  { value, chosen, cost }: { value: ValueData; chosen: ChosenLearners; cost: LearnedCost },
  { costWeight = 0, meanCost }: ValueOptions,
): Pick<ValueReport, "costWeight" | "sweep"> & { costWeight: number } {
  if (chosen.held === undefined || cost.chosen.held === undefined) {
    if (meanCost === undefined) return { costWeight };
    throw new RollbookError(
      "too-few-units",
      { rows: value.outcomes.start.length - 1, least: LEAST_TASKS },
      `a budget needs at least ${LEAST_TASKS} tasks to be calibrated on. Log more, or state --cost-weight.`,
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

/** Rows of one task stay together. A row without a task is its own group. */
function groupOf(row: OutcomeRow & { readonly task?: string }): string {
  return row.task ?? row.id;
}
