/** Multinomial logistic regression over candidate sets: P(a | x) ∝ exp(w_a·x + v·z_a) over the selectable candidates.
 *  In: rows, labels, masks. Out: weights, calibration-free. Convex with L2; solved by L-BFGS; nothing is drawn.
 *  The loss is the weighted mean of −ln P(label), plus l2/2·(‖w‖² + ‖v‖²) without the biases. */
import { log, RollbookError, softmax } from "../../base/index.ts";
import type { SparseRows } from "../rows/index.ts";
import { type Minimised, minimise, type Objective } from "./lbfgs.ts";

export interface LogisticData {
  readonly rows: SparseRows;
  /** Class of each row. */
  readonly labels: Int32Array;
  readonly classes: number;
  /** rows × classes, 1 where the class may be chosen; absent: all. */
  readonly mask?: Uint8Array;
  /** rows × classes × width, features of the candidates. */
  readonly candidates?: { readonly width: number; readonly values: Float64Array };
  readonly weights?: Float64Array;
}

interface LogisticOptions {
  readonly l2: number;
  readonly maxIterations: number;
  readonly tolerance: number;
}

/** `weights`: classes × size, class by class; then `width` shared ones of the candidates' features. */
interface Logistic extends Minimised {
  readonly weights: Float64Array;
}

export function trainLogistic(data: LogisticData, options: LogisticOptions): Logistic {
  checkData(data);
  const weights = new Float64Array(data.classes * data.rows.size + (data.candidates?.width ?? 0));
  return { weights, ...minimise(weights, logisticObjective(data, options.l2), options) };
}

/** Loss and gradient; exported for the finite-difference check. */
export function logisticObjective(data: LogisticData, l2: number): Objective {
  const { rows, labels, classes, candidates } = data;
  const { size } = rows;
  const count = labels.length;
  const width = candidates?.width ?? 0;
  const total = data.weights === undefined ? count : data.weights.reduce((sum, each) => sum + each, 0);
  const scores = new Float64Array(classes);
  return (point, gradient) => {
    gradient.fill(0);
    let loss = 0;
    for (let r = 0; r < count; r++) {
      scoreRow(data, point, r, scores);
      softmax(scores);
      const share = (data.weights?.[r] ?? 1) / total;
      loss -= share * log(Math.max(scores[labels[r]!]!, 1e-300));
      for (let a = 0; a < classes; a++) {
        const error = share * (scores[a]! - (labels[r] === a ? 1 : 0));
        if (error === 0) continue;
        const base = a * size;
        for (let e = rows.start[r]!; e < rows.start[r + 1]!; e++) {
          const at = base + rows.indices[e]!;
          gradient[at] = gradient[at]! + error * rows.values[e]!;
        }
        for (let j = 0; j < width; j++) {
          const at = classes * size + j;
          gradient[at] = gradient[at]! + error * candidates!.values[(r * classes + a) * width + j]!;
        }
      }
    }
    return loss + addPenalty({ point, gradient, l2, size, end: classes * size });
  };
}

/** Scores of the classes of a row; −∞ where masked. */
export function scoreRow(
  { rows, classes, mask, candidates }: Omit<LogisticData, "labels">,
  weights: Float64Array,
  r: number,
  scores: Float64Array,
): void {
  const { size, start, indices, values } = rows;
  const width = candidates?.width ?? 0;
  for (let a = 0; a < classes; a++) {
    if (mask !== undefined && mask[r * classes + a] === 0) {
      scores[a] = Number.NEGATIVE_INFINITY;
      continue;
    }
    let sum = 0;
    const base = a * size;
    for (let e = start[r]!; e < start[r + 1]!; e++) sum += weights[base + indices[e]!]! * values[e]!;
    for (let j = 0; j < width; j++)
      sum += weights[classes * size + j]! * candidates!.values[(r * classes + a) * width + j]!;
    scores[a] = sum;
  }
}

/** Place 0 of a class is its bias, which nothing pulls towards 0. */
function addPenalty(options: {
  point: Float64Array;
  gradient: Float64Array;
  l2: number;
  size: number;
  end: number;
}): number {
  const { point, gradient, l2, size, end } = options;
  let sum = 0;
  for (let base = 0; base < point.length; base += size) {
    const stop = base < end ? base + size : point.length;
    for (let i = base < end ? base + 1 : base; i < stop; i++) {
      const weight = point[i]!;
      sum += weight * weight;
      gradient[i] = gradient[i]! + l2 * weight;
    }
    if (base >= end) break;
  }
  return (l2 / 2) * sum;
}

function checkData({ rows, labels, classes, mask }: LogisticData): void {
  const fault = (row: number, what: string) =>
    new RollbookError("bad-training-data", { row }, `row ${row}: ${what}.`);
  if (labels.length === 0 || rows.start.length !== labels.length + 1)
    throw new RollbookError(
      "empty-split",
      { labels: labels.length },
      `${labels.length} labels for ${rows.start.length - 1} rows. Training needs at least one row.`,
    );
  labels.forEach((label, r) => {
    if (!(label >= 0 && label < classes))
      throw fault(r, `label ${label} is not in 0 … ${classes - 1}. Name its candidate`);
    if (mask !== undefined && mask[r * classes + label] === 0)
      throw fault(r, `the chosen candidate ${label} is marked as not selectable. Repair the mask`);
  });
  if (labels.every((label) => label === labels[0]))
    throw new RollbookError(
      "one-class-data",
      { label: labels[0], rows: labels.length },
      `all ${labels.length} rows chose candidate ${labels[0]}: there is nothing to tell apart. Log a policy that explores.`,
    );
}
