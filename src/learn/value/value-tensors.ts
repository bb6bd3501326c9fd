/** The tensors and settings of a value model.
 *  In: encoded rows and the chosen parts. Out: the final fit, of all rows. Pure. */
import type { Tensors } from "../../policy/index.ts";
import type { ChosenPart } from "./choose-learners.ts";
import type { EncodedRows } from "./fit-columns.ts";
import {
  everyNth,
  fitLogistic,
  fitRidge,
  MOST_NEIGHBOURS,
  neighbourRows,
  type ValueData,
  type ValueLearner,
  viewOf,
} from "./learners.ts";
import type { LinearValues } from "./solve-ridge.ts";
import type { LinearLearner } from "./try-families.ts";

export function partSettings(parts: readonly ChosenPart[]): Record<string, number> {
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

/** The linear part also carries the remainder of the means: Σ shares·(part − mean) + base. */
export function partTensors(
  data: ValueData,
  parts: readonly ChosenPart[],
  { all, means, base }: { all: Int32Array; means: Float64Array; base: Float64Array },
): Tensors {
  const { arms, rows } = data;
  const taken = parts.reduce((sum, { share }) => sum + share, 0);
  const bias = base.map((each, a) => each - taken * means[a]!);
  const weights = new Float64Array(rows.size * arms);
  const tensors: Record<string, Tensors[string]> = { means: { shape: [arms], data: means } };
  for (const { learner, share, from } of parts) {
    if (share === 0) continue;
    const seen = viewOf(data, learner);
    if (learner.kind === "knn")
      Object.assign(tensors, neighbourTensors(seen, all), scaleTensor(data, learner));
    else if (learner.kind === "logistic")
      Object.assign(
        tensors,
        linearTensors("logistic", seen, fitLogistic(seen, learner.penalties, { picked: all })),
      );
    else {
      const fitted = fitRidge(seen, learner.penalties, { picked: all, from });
      for (let j = 0; j < weights.length; j++) weights[j] = weights[j]! + share * fitted.weights[j]!;
      for (let a = 0; a < arms; a++) bias[a] = bias[a]! + share * fitted.bias[a]!;
    }
  }
  return {
    ...tensors,
    linear_weights: { shape: [rows.size, arms], data: weights },
    linear_bias: { shape: [arms], data: bias },
  };
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

/** Neighbour rows are stored in their own units. These factors convert a question to them. */
function scaleTensor({ views }: ValueData, { reads }: ValueLearner): Tensors {
  const factors = reads === "raw" ? views?.raw : undefined;
  return factors === undefined ? {} : { near_scale: { shape: [factors.length], data: factors } };
}

/** Keeps every n-th row if there are too many. */
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
