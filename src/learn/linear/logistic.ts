/** Multinomial logistic regression over candidate sets: P(a | x) ∝ exp(w_a·x + v·z_a) over the selectable candidates.
 *  In: rows, labels, masks. Out: weights, not calibrated. Convex with L2; solved by L-BFGS; no random draws.
 *  The loss is the weighted mean of −ln P(label), plus l2/2·(‖w‖² + ‖v‖²) without the biases. */
import { log, RollbookError, softmax } from "../../base/index.ts";
import { distinctRows } from "../../policy/index.ts";
import type { SparseRows } from "../rows/index.ts";
import { type Minimised, minimise, type Objective } from "./lbfgs.ts";

export interface LogisticData {
  readonly rows: SparseRows;
  /** Class of each row. */
  readonly labels: Int32Array;
  readonly classes: number;
  /** rows × classes, 1 if the class may be chosen. Absent: all may be chosen. */
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

/** `weights`: classes × size, class by class;
 *  then `width` weights of the candidates' features, shared by all classes. */
interface Logistic extends Minimised {
  readonly weights: Float64Array;
}

export function trainLogistic(data: LogisticData, options: LogisticOptions): Logistic {
  checkData(data);
  const weights = new Float64Array(data.classes * data.rows.size + (data.candidates?.width ?? 0));
  return { weights, ...minimise(weights, logisticObjective(data, options.l2), options) };
}

/** Loss and gradient; exported for the finite-difference check. A log repeats its prompts, so class probabilities are
 *  computed once for equal rows. Every row then adds its own error, in the order of the rows. */
export function logisticObjective(data: LogisticData, l2: number): Objective {
  const { rows, labels, classes, candidates } = data;
  const { size } = rows;
  const count = labels.length;
  const width = candidates?.width ?? 0;
  const total = data.weights === undefined ? count : data.weights.reduce((sum, each) => sum + each, 0);
  const { kind, first } = distinctRows(rows, (a, b) => haveSameCandidates(data, a, b));
  const chances = new Float64Array(first.length * classes);
  // Column by column, so that the classes of one entry are adjacent in memory.
  const slopes = new Float64Array(classes * size);
  const errors = new Float64Array(classes);
  return (point, gradient) => {
    gradient.fill(0);
    slopes.fill(0);
    first.forEach((r, k) => {
      const own = chances.subarray(k * classes, (k + 1) * classes);
      scoreRow(data, point, r, own);
      softmax(own);
    });
    let loss = 0;
    for (let r = 0; r < count; r++) {
      const at = kind[r]! * classes;
      const share = (data.weights?.[r] ?? 1) / total;
      loss -= share * log(Math.max(chances[at + labels[r]!]!, 1e-300));
      for (let a = 0; a < classes; a++) errors[a] = share * (chances[at + a]! - (labels[r] === a ? 1 : 0));
      addErrors(rows, r, { errors, slopes });
      for (let j = 0; j < width; j++)
        for (let a = 0; a < classes; a++) {
          const shared = classes * size + j;
          const value = candidates!.values[(r * classes + a) * width + j]!;
          gradient[shared] = gradient[shared]! + errors[a]! * value;
        }
    }
    for (let column = 0; column < size; column++)
      for (let a = 0; a < classes; a++) gradient[a * size + column] = slopes[column * classes + a]!;
    return loss + addPenalty({ point, gradient, l2, size, end: classes * size });
  };
}

/** slopes[column][class] += errors[class]·value for every entry of the row.
 *  Four classes at a time stay in registers. */
function addErrors(
  { start, indices, values }: SparseRows,
  r: number,
  { errors, slopes }: { errors: Float64Array; slopes: Float64Array },
): void {
  const classes = errors.length;
  const [from, to] = [start[r]!, start[r + 1]!];
  let a = 0;
  for (; a + 4 <= classes; a += 4) {
    const [e0, e1, e2, e3] = [errors[a]!, errors[a + 1]!, errors[a + 2]!, errors[a + 3]!];
    for (let e = from; e < to; e++) {
      const at = indices[e]! * classes + a;
      const value = values[e]!;
      slopes[at] = slopes[at]! + e0 * value;
      slopes[at + 1] = slopes[at + 1]! + e1 * value;
      slopes[at + 2] = slopes[at + 2]! + e2 * value;
      slopes[at + 3] = slopes[at + 3]! + e3 * value;
    }
  }
  for (; a < classes; a++) {
    const error = errors[a]!;
    for (let e = from; e < to; e++) {
      const at = indices[e]! * classes + a;
      slopes[at] = slopes[at]! + error * values[e]!;
    }
  }
}

function haveSameCandidates({ classes, mask, candidates }: LogisticData, a: number, b: number): boolean {
  for (let c = 0; c < classes; c++)
    if (mask !== undefined && mask[a * classes + c] !== mask[b * classes + c]) return false;
  const length = classes * (candidates?.width ?? 0);
  for (let i = 0; i < length; i++)
    if (candidates!.values[a * length + i] !== candidates!.values[b * length + i]) return false;
  return true;
}

/** Scores of the classes of a row; −∞ if masked. */
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

/** Adds the L2 penalty. Place 0 of a class is its bias, which has no penalty. */
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
