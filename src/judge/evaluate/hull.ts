/** The area under the upper hull of cost–quality points, with bounds that account for the hull being a maximum.
 *  In: cost and quality of each point as estimates on the same units. Out: the mean height of the hull of all points,
 *  of the single candidates alone, and their difference.
 *
 *  The hull of noisy points lies above the true hull, because it picks the lucky points. So the corners are chosen on
 *  four fifths of the units and measured on the other fifth, in turn. These corners are the best or worse, so their
 *  area is biased downwards. The plain area is biased upwards. A band reaches from the lowest to the highest end of the
 *  intervals of both. The band of a difference uses the pairs that are biased to either side. */
import type { Rng } from "../../base/index.ts";
import { correctedInterval, difference, type Estimate, estimateOf, type Interval } from "../ope/index.ts";

export interface Banded {
  /** Undefined if no share recovers that much. */
  readonly value: number | undefined;
  readonly band: Pick<Interval, "low" | "high"> | undefined;
}

interface HullPoints {
  readonly costs: readonly Estimate[];
  readonly qualities: readonly Estimate[];
  /** True for single candidates. They span the cost range. */
  readonly singles: readonly boolean[];
}

interface HullAreas {
  readonly all: Banded;
  readonly singles: Banded;
  readonly gain: Banded;
}

/** Undefined if the single candidates span no range of cost. */
export function hullAreas(
  points: HullPoints,
  { rng, level }: { rng: Rng; level: number },
): HullAreas | undefined {
  const folds = foldsOf(points.costs[0]!.units, rng);
  const everyone = [{ chosenOn: undefined, measuredOn: undefined }];
  const made = (all: boolean, crossed: boolean) =>
    areaEstimate(points, { all, folds: crossed ? folds : everyone });
  const [crossAll, plainAll] = [made(true, true), made(true, false)];
  const [crossSingles, plainSingles] = [made(false, true), made(false, false)];
  if (!crossAll || !plainAll || !crossSingles || !plainSingles) return undefined;
  const banded = (first: Estimate, ...rest: readonly Estimate[]): Banded => {
    const intervals = [first, ...rest].map((each) => correctedInterval(each, level));
    const band = {
      low: Math.min(...intervals.map(({ low }) => low)),
      high: Math.max(...intervals.map(({ high }) => high)),
    };
    return { value: first.value, band };
  };
  return {
    all: banded(crossAll, plainAll),
    singles: banded(crossSingles, plainSingles),
    gain: banded(
      difference(crossAll, crossSingles),
      difference(crossAll, plainSingles),
      difference(plainAll, crossSingles),
    ),
  };
}

const FOLDS = 5;

/** Numbers of units; undefined means all units. */
interface HullFold {
  readonly chosenOn: readonly number[] | undefined;
  readonly measuredOn: readonly number[] | undefined;
}

function foldsOf(units: number, rng: Rng): HullFold[] {
  const order = rng.shuffle(Array.from({ length: units }, (_, i) => i));
  return Array.from({ length: Math.min(FOLDS, units) }, (_, fold) => ({
    chosenOn: order.filter((_, rank) => rank % FOLDS !== fold),
    measuredOn: order.filter((_, rank) => rank % FOLDS === fold),
  }));
}

/** The area as a mean over units. On each fold: its value there plus the unit's influence on it (delta method). */
function areaEstimate(
  points: HullPoints,
  { all, folds }: { all: boolean; folds: readonly HullFold[] },
): Estimate | undefined {
  const used = points.singles.flatMap((single, i) => (all || single ? [i] : []));
  const tops = (of: readonly Estimate[]) => used.map((i) => of[i]!.ratios[0]!.top);
  const [costs, qualities] = [tops(points.costs), tops(points.qualities)];
  const single = used.map((i) => points.singles[i]!);
  const terms = new Float64Array(points.costs[0]!.units);
  for (const { chosenOn, measuredOn } of folds) {
    const where = (units: readonly number[] | undefined) =>
      used.map((_, j) => ({
        cost: meanOf(costs[j]!, units),
        quality: meanOf(qualities[j]!, units),
        single: single[j]!,
      }));
    const corners = cornersOf(where(chosenOn));
    const held = where(measuredOn);
    const found = corners === undefined ? undefined : slopesOf(corners, held);
    if (found === undefined) return undefined;
    const add = (unit: number) => {
      let term = found.area;
      for (const { point, cost, quality } of found.slopes)
        term +=
          quality * (qualities[point]![unit]! - held[point]!.quality) +
          cost * (costs[point]![unit]! - held[point]!.cost);
      terms[unit] = term;
    };
    if (measuredOn === undefined) for (let unit = 0; unit < terms.length; unit++) add(unit);
    else measuredOn.forEach(add);
  }
  return estimateOf("hull", [{ top: terms, bottom: undefined }]);
}

function meanOf(values: Float64Array, units: readonly number[] | undefined): number {
  let total = 0;
  if (units === undefined) for (const value of values) total += value;
  else for (const unit of units) total += values[unit]!;
  return total / (units ?? values).length;
}

interface Point {
  readonly cost: number;
  readonly quality: number;
  readonly single: boolean;
}

/** A corner has the cost of one point and the quality of another. At the cheapest single candidate's cost, the hull has
 *  the quality of the best point that costs no more. From the best point on, the hull is flat. */
interface Corner {
  readonly costOf: number;
  readonly qualityOf: number;
}

/** Mean height of the upper concave hull between the cheapest and the most expensive single candidate. */
export function hullArea(points: readonly Point[]): number | undefined {
  const corners = cornersOf(points);
  return corners === undefined ? undefined : slopesOf(corners, points)?.area;
}

function cornersOf(points: readonly Point[]): Corner[] | undefined {
  const numbers = points.map((_, i) => i);
  const singles = numbers.filter((i) => points[i]!.single);
  const least = (of: readonly number[], worth: (p: Point) => number) =>
    of.reduce((best, i) => (worth(points[i]!) < worth(points[best]!) ? i : best), of[0]!);
  const from = least(singles, ({ cost }) => cost);
  const to = least(singles, ({ cost }) => -cost);
  const [low, high] = [points[from]!.cost, points[to]!.cost];
  if (!(high > low)) return undefined;
  // Points beyond the most expensive single candidate are ignored.
  const inside = numbers.filter((i) => points[i]!.cost <= high);
  const best = (of: readonly number[]) => least(of, ({ quality }) => -quality);
  const corners: Corner[] = [];
  const at = ({ costOf, qualityOf }: Corner) => ({ x: points[costOf]!.cost, y: points[qualityOf]!.quality });
  for (const next of [
    { costOf: from, qualityOf: best(inside.filter((i) => points[i]!.cost <= low)) },
    ...inside
      .filter((i) => points[i]!.cost > low && points[i]!.cost < high)
      .sort((a, b) => points[a]!.cost - points[b]!.cost || points[a]!.quality - points[b]!.quality)
      .map((i) => ({ costOf: i, qualityOf: i })),
    { costOf: to, qualityOf: best(inside) },
  ]) {
    while (corners.length >= 2 && turnsUp(at(corners.at(-2)!), at(corners.at(-1)!), at(next))) corners.pop();
    corners.push(next);
  }
  return corners;
}

function turnsUp(
  a: { x: number; y: number },
  b: { x: number; y: number },
  c: { x: number; y: number },
): boolean {
  return (b.y - a.y) * (c.x - a.x) <= (c.y - a.y) * (b.x - a.x);
}

/** The mean height of the line through the corners, and its derivative by each cost and quality. */
function slopesOf(
  corners: readonly Corner[],
  points: readonly Point[],
): { area: number; slopes: { point: number; cost: number; quality: number }[] } | undefined {
  const x = corners.map(({ costOf }) => points[costOf]!.cost);
  const y = corners.map(({ qualityOf }) => points[qualityOf]!.quality);
  const last = corners.length - 1;
  const width = x[last]! - x[0]!;
  if (!(width > 0)) return undefined;
  let total = 0;
  for (let i = 1; i <= last; i++) total += ((y[i]! + y[i - 1]!) / 2) * (x[i]! - x[i - 1]!);
  const area = total / width;
  const slopes = corners.flatMap(({ costOf, qualityOf }, i) => {
    const left = i === 0 ? 0 : x[i]! - x[i - 1]!;
    const right = i === last ? 0 : x[i + 1]! - x[i]!;
    const before = i === 0 ? area : (y[i - 1]! + y[i]!) / 2;
    const after = i === last ? area : (y[i]! + y[i + 1]!) / 2;
    return [
      { point: qualityOf, cost: 0, quality: (left + right) / 2 / width },
      { point: costOf, cost: (before - after) / width, quality: 0 },
    ];
  });
  return { area, slopes };
}
