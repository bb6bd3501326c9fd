/** Sets the confidence floor by conformal risk control (Angelopoulos, Bates, Fisch, Lei and Schuster, 2024).
 *  In: calibration rows that the policy has not learned from, a level α. Out: the smallest floor for which the expected
 *  risk on the next row is at most α, for any number of rows and any distribution of them.
 *
 *  The risk is the loss of departures. A row costs (1 − quality) if the policy acts and chooses differently from the
 *  table, else 0. This is an upper bound on the policy's loss against the table. It falls as the floor rises, as the
 *  theorem requires. A log knows the outcome of only one choice, so the loss is weighted by π/p. The weighted loss is
 *  unbiased, and at most 1/p_min for a p_min stated before the data.
 *  Rule: the smallest λ with  n/(n+1)·R̂(λ) + B/(n+1) ≤ α,  n units, B the largest loss of a unit. */
import { RollbookError } from "../base/index.ts";
import { type DecisionPolicy, distribution, type StaticTable } from "../policy/index.ts";
import { type JudgedRow, requireRows } from "./evaluate/index.ts";
import {
  correctedInterval,
  type Estimate,
  type Interval,
  meanOverUnits,
  type Range,
  type Units,
} from "./ope/index.ts";

interface RiskTerms {
  readonly policy: DecisionPolicy;
  readonly table: StaticTable;
  /** The least probability that the behaviour policy could give a choice, known before the data. */
  readonly propensityFloor: number;
  /** The range of quality, known before the data. */
  readonly range: Range;
}

interface FloorChoice {
  /** Null: no floor keeps the promise, so the static table always decides. */
  readonly floor: number | null;
  readonly alpha: number;
  readonly units: number;
  /** B: the largest loss of a unit. */
  readonly largestLoss: number;
  /** R̂ at the floor. */
  readonly empiricalRisk: number;
  /** The left side of the rule, compared with α. */
  readonly bound: number;
  /** Share of calibration rows at or above the floor. */
  readonly coverage: number;
  readonly feedback: "bandit" | "full";
}

export function calibrateFloor(
  rows: readonly JudgedRow[],
  { alpha, ...terms }: RiskTerms & { readonly alpha: number },
): FloorChoice {
  checkAlpha(alpha);
  const { confidence, loss, units, largestLoss, feedback } = departures(rows, terms);
  const order = Array.from(confidence.keys()).sort((a, b) => confidence[b]! - confidence[a]!);
  const corrected = (risk: number) => (units.count * risk + largestLoss) / (units.count + 1);
  let best = { floor: null as number | null, risk: 0, taken: 0 };
  let risk = 0;
  for (let from = 0; from < order.length; ) {
    let to = from;
    // Rows with equal confidence pass or fail together.
    while (to < order.length && confidence[order[to]!] === confidence[order[from]!]) {
      const row = order[to]!;
      risk += loss[row]! / units.rows[units.of[row]!]! / units.count;
      to++;
    }
    if (corrected(risk) > alpha) break;
    best = { floor: to === order.length ? 0 : confidence[order[from]!]!, risk, taken: to };
    from = to;
  }
  return {
    floor: best.floor,
    alpha,
    units: units.count,
    largestLoss,
    empiricalRisk: best.risk,
    bound: corrected(best.risk),
    coverage: best.taken / order.length,
    feedback,
  };
}

/** The same risk on rows that were used neither for training nor for calibration. The interval allows for failures of
 *  departures that the log has not shown yet. */
export function realisedRisk(
  rows: readonly JudgedRow[],
  { floor, ...terms }: RiskTerms & { readonly floor: number | null },
): { readonly estimate: Estimate; readonly interval: Interval } {
  const { confidence, loss, weight, units } = departures(rows, terms);
  const acts = (i: number) => floor !== null && confidence[i]! >= floor;
  const [losses, weights] = [loss, weight].map((each) => each.map((one, i) => (acts(i) ? one : 0)));
  // A loss lies between 0 and 1.
  const exposure = { weights: weights!, units, width: 1 };
  const estimate = meanOverUnits("risk", losses!, { units, exposure });
  return { estimate, interval: correctedInterval(estimate) };
}

/** The loss of every row if the policy acts there, and the weight of the outcome behind that loss. */
function departures(rows: readonly JudgedRow[], terms: RiskTerms) {
  requireRows(rows);
  const { policy, table, propensityFloor, range } = terms;
  checkTerms(terms);
  const full = rows.every((row) => row.known !== undefined);
  const router = { table, floor: 0, exploration: 0 };
  const [confidence, loss, weight] = [rows, rows, rows].map((each) => new Float64Array(each.length)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  for (const [i, row] of rows.entries()) {
    const trusted = distribution(row.context, row.candidates, { ...router, policy });
    const fallback = distribution(row.context, row.candidates, router).probabilities;
    confidence[i] = trusted.confidence!;
    const add = (c: number, quality: number | null, scale: number) => {
      if (fallback[c] === 1) return;
      weight[i] = weight[i]! + trusted.probabilities[c]! * scale;
      // Keep this order of operations: a promise is reproduced to its last bit.
      loss[i] = loss[i]! + trusted.probabilities[c]! * lossIn(range, quality, row) * scale;
    };
    if (full) for (const [c, each] of row.known!.entries()) add(c, each.quality, 1);
    else add(row.chosen, row.measures.quality, 1 / propensityOf(row, i, propensityFloor));
  }
  return {
    confidence,
    loss,
    weight,
    units: unitsOfRows(rows),
    largestLoss: full ? 1 : 1 / propensityFloor,
    feedback: full ? ("full" as const) : ("bandit" as const),
  };
}

function unitsOfRows(rows: readonly JudgedRow[]): Units & { readonly rows: Float64Array } {
  const places = new Map<string, number>();
  const of = Int32Array.from(rows, ({ unit }) => {
    if (!places.has(unit)) places.set(unit, places.size);
    return places.get(unit)!;
  });
  const counts = new Float64Array(places.size);
  for (const unit of of) counts[unit] = counts[unit]! + 1;
  return { count: places.size, of, rows: counts };
}

function lossIn({ low, high }: Range, quality: number | null, row: JudgedRow): number {
  if (quality !== null && quality >= low && quality <= high) return (high - quality) / (high - low);
  throw new RollbookError(
    "range-broken",
    { decision: row.id, value: quality, low, high },
    `decision ${row.id}: quality ${quality} is outside the range ${low} … ${high}. Give the range of all qualities with --quality-range=LOW..HIGH.`,
  );
}

function propensityOf({ id, propensity }: JudgedRow, row: number, least: number): number {
  if (propensity === null)
    throw new RollbookError(
      "missing-propensity",
      { row, decision: id },
      `decision ${id}: its propensity was not logged, and a guaranteed floor needs logged propensities. Log propensities, or leave out --floor-risk.`,
    );
  if (propensity >= least) return propensity;
  throw new RollbookError(
    "range-broken",
    { row, decision: id, propensity, least },
    `decision ${id}: propensity ${propensity} is below the promised ${least}. State the true least one with --propensity-floor.`,
  );
}

function checkAlpha(alpha: number): void {
  if (alpha > 0 && alpha < 1) return;
  throw new RollbookError("bad-level", { alpha }, `the risk ${alpha} is not between 0 and 1.`);
}

function checkTerms({ propensityFloor, range }: RiskTerms): void {
  if (propensityFloor > 0 && propensityFloor <= 1 && range.high > range.low) return;
  throw new RollbookError(
    "bad-range",
    { propensityFloor, ...range },
    `propensity floor ${propensityFloor}, quality ${range.low} … ${range.high}: give a floor in (0, 1] and a range with low < high.`,
  );
}
