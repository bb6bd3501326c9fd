/** A policy that predicts the reward of every candidate and takes the best one.
 *  In: a "value" model with optional parts: linear, logistic, neighbours. Out: answers. Greedy: the best candidate gets
 *  probability 1, and exact ties share it. The router explores, not the policy. Confidence is the margin between the
 *  best and the next predicted reward, as a share of the range of rewards.
 *  A candidate without training outcomes gets 0. */
import { exp } from "../../base/index.ts";
import type { PolicyModel } from "../checkpoint.ts";
import type { DecisionCandidate, DecisionContext, DecisionPolicy, PolicyAnswer } from "../decision.ts";
import type { ValueSpec } from "../feature-spec.ts";
import type { SparseVector } from "../features.ts";
import { armIndex, evenAnswer, integersOf, tensorOf } from "../model-parts.ts";
import { type NeighbourMeans, neighbourMeans } from "./neighbours.ts";
import { makeValueReader, type ValueReader } from "./value-features.ts";

/** The parts of the prediction for the question read last. */
interface ValueParts {
  readonly linear: Float64Array;
  readonly logistic: Float64Array;
  readonly neighbours: Float64Array;
  /** Predicted cost; 0 if the policy does not weigh cost. */
  readonly cost: Float64Array;
}

export interface ValueModel {
  readonly reader: ValueReader;
  /** One number per arm. Scratch space, valid until the next call. */
  predict(context: DecisionContext): Float64Array;
  parts(context: DecisionContext): ValueParts;
  /** Only the neighbours' part, for a vector of the reader. */
  neighbours(vector: SparseVector): Float64Array;
}

export function valuePolicy(model: PolicyModel): DecisionPolicy["answer"] {
  const { predict } = openValueModel(model);
  const known = armIndex(model.arms);
  const range = model.settings.range ?? 1;
  return (context, candidates) => chooseBest(candidates, { known, values: predict(context), range });
}

export function openValueModel(model: PolicyModel): ValueModel {
  const reader = makeValueReader(model.spec as ValueSpec, columnsOf(model));
  const arms = model.arms.length;
  const linear = linearPart(model, { name: "linear", size: reader.size });
  const logistic = linearPart(model, { name: "logistic", size: reader.size });
  const cost = linearPart(model, { name: "cost", size: reader.size });
  const near = neighbourPart(model, reader.size);
  const { low = 0, high = 1, logistic_share = 0, neighbour_share = 0, cost_weight = 0 } = model.settings;
  const parts = {
    linear: new Float64Array(arms),
    logistic: new Float64Array(arms),
    neighbours: new Float64Array(arms),
    cost: new Float64Array(arms),
  };
  const values = new Float64Array(arms);
  const fill = (context: DecisionContext) => {
    const vector = reader.context(context);
    linear?.(vector, parts.linear);
    logistic?.(vector, parts.logistic);
    near?.(vector, parts.neighbours);
    cost?.(vector, parts.cost);
    if (logistic !== undefined)
      for (let a = 0; a < arms; a++)
        parts.logistic[a] = logistic_share * (low + (high - low) / (1 + exp(-parts.logistic[a]!)));
    for (let a = 0; a < arms; a++) parts.neighbours[a] = neighbour_share * parts.neighbours[a]!;
    for (let a = 0; a < arms; a++) parts.cost[a] = cost_weight * parts.cost[a]!;
    return parts;
  };
  return {
    reader,
    parts: fill,
    neighbours(vector) {
      const means = new Float64Array(arms);
      near?.(vector, means);
      return means.map((mean) => neighbour_share * mean);
    },
    predict(context) {
      fill(context);
      for (let a = 0; a < arms; a++)
        values[a] = parts.linear[a]! + parts.logistic[a]! + parts.neighbours[a]! - parts.cost[a]!;
      return values;
    },
  };
}

type Part = (vector: SparseVector, out: Float64Array) => void;

/** bias_a + w_a·x. */
function linearPart(model: PolicyModel, { name, size }: { name: string; size: number }): Part | undefined {
  if (model.tensors[`${name}_weights`] === undefined) return undefined;
  const arms = model.arms.length;
  // Column by column: the arms of one feature are adjacent in memory.
  const weights = tensorOf(model, `${name}_weights`, [size, arms]);
  const bias = tensorOf(model, `${name}_bias`, [arms]);
  return ({ indices, values, count }, out) => {
    for (let a = 0; a < arms; a++) out[a] = bias[a]!;
    for (let e = 0; e < count; e++) {
      const [base, value] = [indices[e]! * arms, values[e]!];
      for (let a = 0; a < arms; a++) out[a] = out[a]! + weights[base + a]! * value;
    }
  };
}

function neighbourPart(model: PolicyModel, size: number): NeighbourMeans | undefined {
  const { settings, tensors, arms } = model;
  if (tensors.near_start === undefined) return undefined;
  const near = neighbourMeans(
    {
      start: integersOf(model, "near_start"),
      indices: integersOf(model, "near_indices"),
      values: tensorOf(model, "near_values", tensors.near_values!.shape),
      outcomeRow: integersOf(model, "near_row"),
      arm: integersOf(model, "near_arm"),
      target: tensorOf(model, "near_target", tensors.near_target!.shape),
    },
    {
      size,
      arms: arms.length,
      ks: [settings.neighbours ?? 10],
      prior: tensorOf(model, "means", [arms.length]),
    },
  );
  if (tensors.near_scale === undefined) return near;
  const scale = tensorOf(model, "near_scale", [size]);
  return (vector, out) => near(scaled(vector, scale), out);
}

function scaled({ indices, values, count }: SparseVector, scale: ArrayLike<number>): SparseVector {
  return { indices, values: values.slice(0, count).map((value, e) => value * scale[indices[e]!]!), count };
}

function columnsOf(model: PolicyModel) {
  const shapeOf = (name: string) => model.tensors[name]?.shape ?? [];
  return {
    ids: model.tensors.columns?.data as Uint32Array,
    idf: tensorOf(model, "column_idf", shapeOf("columns")),
    centre: tensorOf(model, "dense_centre", shapeOf("dense_centre")),
    factor: tensorOf(model, "dense_factor", shapeOf("dense_centre")),
    limit: tensorOf(model, "dense_limit", shapeOf("dense_centre")),
    squashed: model.tensors.dense_squashed?.data as Uint8Array,
  };
}

function chooseBest(
  candidates: readonly DecisionCandidate[],
  { known, values, range }: { known: ReadonlyMap<string, number>; values: Float64Array; range: number },
): PolicyAnswer {
  let [top, next] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const worth = candidates.map(({ id, selectable }) => {
    const arm = selectable ? known.get(id) : undefined;
    const value = arm === undefined ? Number.NEGATIVE_INFINITY : values[arm]!;
    if (value > top) [top, next] = [value, top];
    else if (value > next) next = value;
    return value;
  });
  if (top === Number.NEGATIVE_INFINITY) return evenAnswer(candidates);
  const best = worth.filter((value) => value === top).length;
  const margin = next === Number.NEGATIVE_INFINITY ? 1 : Math.min(1, Math.max(0, (top - next) / range));
  return {
    probabilities: worth.map((value) => (value === top ? 1 / best : 0)),
    confidence: best > 1 ? 0 : margin,
  };
}
