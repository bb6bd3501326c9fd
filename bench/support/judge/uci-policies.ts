/** The two policies of a UCI set turned into a bandit, and the rows that judge them. */
import { softmax } from "../../../src/base/exact-math.ts";
import { rngFrom } from "../../../src/base/rng.ts";
import type { BanditPolicies, Multiclass } from "./uci-multiclass.ts";

/** Share of uniform exploration in the logging policy. Its propensity floor is share / classes. */
export const EXPLORATION = 0.4;
const TARGET_EXPLORATION = 0.1;

/** Two nearest-centroid classifiers from two quarters of the rows, softened. The other half is held out. Its context is
 *  the first classifier's scores (enough for the reward model) or the raw features. */
export function twoPolicies(
  all: Multiclass,
  context: "scores" | "raw" = "scores",
): { held: Multiclass; policies: BanditPolicies } {
  const order = rngFrom(1).shuffle(Array.from(all.label.keys()));
  const quarter = Math.floor(order.length / 4);
  const [first, second] = [order.slice(0, quarter), order.slice(quarter, 2 * quarter)];
  const heldRows = order.slice(2 * quarter);
  const count = all.classes.length;
  const scores = scoresOf(all, centroids(all, first), heldRows);
  const held: Multiclass = {
    width: context === "raw" ? all.width : count,
    features: context === "raw" ? rowsOf(all, heldRows) : scores,
    label: Int32Array.from(heldRows, (row) => all.label[row]!),
    classes: all.classes,
  };
  const other = scoresOf(all, centroids(all, second), heldRows);
  return {
    held,
    policies: {
      behaviour: soften(scores, count, EXPLORATION),
      target: soften(other, count, TARGET_EXPLORATION),
    },
  };
}

function rowsOf({ features, width }: Multiclass, rows: readonly number[]): Float64Array {
  const out = new Float64Array(rows.length * width);
  for (const [i, row] of rows.entries())
    out.set(features.subarray(row * width, (row + 1) * width), i * width);
  return out;
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

/** Softmax of negative squared distances over the mean distance: rows × classes; each row sums to 1. */
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
