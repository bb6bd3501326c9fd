/** Behaviour cloning: multinomial logistic regression of the logged choice on the features, with L2, calibrated.
 *  In: decisions (outcomes are not used), options, a seed. Out: a "softmax-linear" model and its quality of fit.
 *  Training = f(data, options, seed). Rows are sorted by id, and the seed splits training from calibration rows. The
 *  solver is deterministic and the arithmetic exact, so the same input gives the same digest on every engine. */
import { compareUtf8, RollbookError, rngFrom } from "../../base/index.ts";
import {
  type FeatureReader,
  type FeatureSpec,
  makeFeatureReader,
  type PolicyModel,
} from "../../policy/index.ts";
import {
  calibrationError,
  fitTemperature,
  type LogisticData,
  logLoss,
  type ScoredRows,
  scoreRow,
  trainLogistic,
} from "../linear/index.ts";
import {
  armsOf,
  compactRows,
  type DecisionData,
  type DecisionRow,
  gatherRows,
  wordScaleOf,
} from "../rows/index.ts";

interface BcOptions {
  readonly spec: FeatureSpec;
  readonly l2?: number;
  readonly maxIterations?: number;
  readonly tolerance?: number;
  /** Share of rows held out to fit the temperature. */
  readonly calibration?: number;
  readonly seed: bigint;
}

interface BcReport {
  readonly trainRows: number;
  readonly calibrationRows: number;
  readonly iterations: number;
  readonly converged: boolean;
  readonly temperature: number;
  /** On the calibration rows, before and after calibration. */
  readonly logLoss: readonly [number, number];
  readonly calibrationError: readonly [number, number];
}

interface Cloned {
  readonly model: PolicyModel;
  readonly report: BcReport;
}

export function trainBc(data: DecisionData, options: BcOptions): Cloned {
  const { spec, l2 = 3e-3, maxIterations = 200, tolerance = 1e-6, calibration = 0.2, seed } = options;
  const { train, held } = splitRows(data.rows, calibration, seed);
  const arms = armsOf(data.rows);
  requireTwoClasses(data.rows);
  const { reader, wordScale } = readerFor(spec, train);
  const full = toLogistic(train, { arms, reader });
  const { rows: compact, columns } = compactRows(full.rows);
  const fitted = trainLogistic({ ...full, rows: compact }, { l2, maxIterations, tolerance });
  const weights = spread(fitted.weights, { columns, size: reader.size, classes: arms.length });
  const shared = fitted.weights.slice(arms.length * columns.length);
  const scored = scoreAll(toLogistic(held, { arms, reader }), joined(weights, shared));
  const temperature = fitTemperature(scored);
  return {
    model: {
      kind: "softmax-linear",
      spec,
      arms,
      config: { algorithm: "bc", data: data.digest, l2, maxIterations, tolerance, calibration },
      settings: { temperature },
      tensors: {
        weights: { shape: [arms.length, reader.size], data: weights },
        candidate_weights: { shape: [spec.candidate.length], data: shared },
        ...(wordScale === undefined ? {} : { word_scale: { shape: [spec.wordBuckets], data: wordScale } }),
      },
    },
    report: {
      trainRows: train.length,
      calibrationRows: held.length,
      iterations: fitted.iterations,
      converged: fitted.converged,
      temperature,
      logLoss: [logLoss(scored, 1), logLoss(scored, temperature)],
      calibrationError: [calibrationError(scored, 1), calibrationError(scored, temperature)],
    },
  };
}

/** A log with only one choice cannot be cloned: the clone would always be certain. */
function requireTwoClasses(rows: readonly DecisionRow[]): void {
  const chosen = new Set(rows.map((row) => row.candidates[row.chosen]?.id));
  if (chosen.size > 1) return;
  const [only] = chosen;
  throw new RollbookError(
    "one-class-data",
    { rows: rows.length, chosen: only, decision: rows[0]?.id },
    `all ${rows.length} rows chose ${only}, from ${rows[0]?.id} on: there is nothing to clone. Log with exploration, or say "always ${only}" in a static table.`,
  );
}

/** Two disjoint parts that depend only on ids and seed. */
function splitRows(rows: readonly DecisionRow[], share: number, seed: bigint) {
  const sorted = [...rows].sort((a, b) => compareUtf8(a.id, b.id));
  const order = rngFrom(seed).split("calibration").shuffle(sorted);
  const count = Math.round(order.length * share);
  const [held, train] = [order.slice(0, count), order.slice(count)];
  if (held.length === 0 || train.length === 0)
    throw new RollbookError(
      "empty-split",
      { rows: rows.length, share },
      `${rows.length} rows leave ${train.length} to train and ${held.length} to calibrate. Log more, or change the share.`,
    );
  return { train, held };
}

/** Learns word rarity from the training rows only. */
function readerFor(
  spec: FeatureSpec,
  train: readonly DecisionRow[],
): { reader: FeatureReader; wordScale?: Float64Array } {
  const plain = makeFeatureReader({ ...spec, wordWeights: "count" });
  if (spec.wordWeights === "count") return { reader: plain };
  const counted = gatherRows(train, plain.size, (row) => plain.context(row.context));
  const wordScale = wordScaleOf(counted, plain.denseSize);
  return { reader: makeFeatureReader(spec, wordScale), wordScale };
}

function toLogistic(
  rows: readonly DecisionRow[],
  { arms, reader }: { arms: readonly string[]; reader: FeatureReader },
): LogisticData {
  const places = new Map(arms.map((id, i) => [id, i]));
  const width = reader.spec.candidate.length;
  const mask = new Uint8Array(rows.length * arms.length);
  const values = new Float64Array(rows.length * arms.length * width);
  const labels = Int32Array.from(rows, (row, r) => {
    for (const candidate of row.candidates) {
      if (!candidate.selectable) continue;
      const at = r * arms.length + places.get(candidate.id)!;
      mask[at] = 1;
      values.set(reader.candidate(candidate), at * width);
    }
    return places.get(row.candidates[row.chosen]?.id ?? "") ?? -1;
  });
  const sparse = gatherRows(rows, reader.size, (row) => reader.context(row.context));
  return { rows: sparse, labels, classes: arms.length, mask, candidates: { width, values } };
}

function scoreAll(data: LogisticData, weights: Float64Array): ScoredRows {
  const { classes, labels } = data;
  const scores = new Float64Array(labels.length * classes);
  for (let r = 0; r < labels.length; r++)
    scoreRow(data, weights, r, scores.subarray(r * classes, (r + 1) * classes));
  return { scores, labels, classes };
}

/** A column that never occurred has weight 0, its optimum under L2. */
function spread(
  compact: Float64Array,
  { columns, size, classes }: { columns: Int32Array; size: number; classes: number },
): Float64Array {
  const full = new Float64Array(classes * size);
  for (let a = 0; a < classes; a++)
    for (let c = 0; c < columns.length; c++) full[a * size + columns[c]!] = compact[a * columns.length + c]!;
  return full;
}

function joined(a: Float64Array, b: Float64Array): Float64Array {
  const both = new Float64Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
