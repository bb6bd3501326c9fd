/** Temperature scaling (Guo et al., 2017): one number that calibrates confidence, fitted on held-out rows.
 *  In: scores of rows that the model has not seen, and their labels. Out: the temperature with the least log loss.
 *  The order of candidates does not change, only the policy's confidence. */
import { exp, log, softmax } from "../../base/index.ts";

export interface ScoredRows {
  /** rows × classes; −∞ if the class may not be chosen. */
  readonly scores: Float64Array;
  readonly labels: Int32Array;
  readonly classes: number;
}

/** Search range of ln T: ±LIMIT. */
const LIMIT = 5;
const STEPS = 60;
const GOLDEN = 0.6180339887498949;

/** Golden-section search: the loss is convex in 1/T, hence unimodal in ln T. */
export function fitTemperature(rows: ScoredRows): number {
  let [low, high] = [-LIMIT, LIMIT];
  let left = high - GOLDEN * (high - low);
  let right = low + GOLDEN * (high - low);
  let [atLeft, atRight] = [logLoss(rows, exp(left)), logLoss(rows, exp(right))];
  for (let i = 0; i < STEPS; i++) {
    if (atLeft <= atRight) {
      [high, right, atRight] = [right, left, atLeft];
      left = high - GOLDEN * (high - low);
      atLeft = logLoss(rows, exp(left));
    } else {
      [low, left, atLeft] = [left, right, atRight];
      right = low + GOLDEN * (high - low);
      atRight = logLoss(rows, exp(right));
    }
  }
  return exp((low + high) / 2);
}

/** Mean −ln P(label). */
export function logLoss(rows: ScoredRows, temperature: number): number {
  let sum = 0;
  eachRow(rows, temperature, (probabilities, label) => {
    sum -= log(Math.max(probabilities[label]!, 1e-300));
  });
  return sum / rows.labels.length;
}

/** Expected calibration error:
 *  |confidence − accuracy| over ten bins of confidence, weighted by their number of rows. */
export function calibrationError(rows: ScoredRows, temperature: number): number {
  const bins = Array.from({ length: 10 }, () => ({ confidence: 0, right: 0 }));
  eachRow(rows, temperature, (probabilities, label) => {
    const top = Math.max(...probabilities);
    const bin = bins[Math.min(9, Math.floor(top * 10))]!;
    bin.confidence += top;
    bin.right += probabilities[label] === top ? 1 : 0;
  });
  return bins.reduce((sum, bin) => sum + Math.abs(bin.confidence - bin.right), 0) / rows.labels.length;
}

function eachRow(
  { scores, labels, classes }: ScoredRows,
  temperature: number,
  visit: (probabilities: Float64Array, label: number) => void,
): void {
  const row = new Float64Array(classes);
  for (let r = 0; r < labels.length; r++) {
    for (let a = 0; a < classes; a++) row[a] = scores[r * classes + a]! / temperature;
    visit(softmax(row), labels[r]!);
  }
}
