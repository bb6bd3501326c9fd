/** An estimate as the sums behind it, so that one value, one standard error and one bootstrap serve all estimators.
 *  Every estimator here is a sum of ratios  Σᵢ topᵢ / Σᵢ bottomᵢ  over independent units i (episodes or rows).
 *  A plain mean is the ratio whose bottom counts the units. */
import { RollbookError } from "../../../base/index.ts";
import type { Units } from "../log/index.ts";

export interface Ratio {
  readonly top: Float64Array;
  /** Undefined: every unit counts 1. */
  readonly bottom: Float64Array | undefined;
}

export interface Estimate {
  readonly name: string;
  readonly value: number;
  readonly units: number;
  readonly ratios: readonly Ratio[];
  /** Absent if outcomes were known beforehand, and for estimates by a model alone. */
  readonly exposure?: Exposure;
}

/** Possible effect of an unseen outcome on an estimate. */
export interface Exposure {
  /** The weight of each row's outcome, or of each episode's return. */
  readonly weights: Float64Array;
  readonly units: Units;
  /** high − low of one outcome; 0 if all outcomes are equal and no range was stated. */
  readonly width: number;
}

export function estimateOf(name: string, ratios: readonly Ratio[], exposure?: Exposure): Estimate {
  const units = ratios[0]!.top.length;
  let value = 0;
  for (const ratio of ratios) value += ratioValue(ratio, name);
  return { name, value, units, ratios, ...(exposure === undefined ? {} : { exposure }) };
}

/** The mean over units of each unit's mean term: every unit counts once, independent of its number of rows. Estimates,
 *  bounds and floors share this estimand. */
export function meanOverUnits(
  name: string,
  terms: Float64Array,
  { units, exposure }: { units: Units; exposure?: Exposure },
): Estimate {
  return estimateOf(name, [{ top: perUnit(terms, units), bottom: undefined }], exposure);
}

/** Σ tops / Σ bottoms over units; each unit enters by its mean. */
export function ratioOverUnits(
  name: string,
  options: { tops: Float64Array; bottoms: Float64Array; units: Units; exposure?: Exposure },
): Estimate {
  const { tops, bottoms, units, exposure } = options;
  return estimateOf(name, [{ top: perUnit(tops, units), bottom: perUnit(bottoms, units) }], exposure);
}

/** a − b on the same units, as one estimate: a paired comparison. */
export function difference(a: Estimate, b: Estimate): Estimate {
  if (a.units !== b.units) {
    throw new RollbookError(
      "not-paired",
      { left: a.units, right: b.units },
      `${a.name} rests on ${a.units} units, ${b.name} on ${b.units}. Compare estimates of the same log.`,
    );
  }
  const negated = b.ratios.map(({ top, bottom }) => ({ top: top.map((x) => -x), bottom }));
  return estimateOf(`${a.name} − ${b.name}`, [...a.ratios, ...negated], exposureOf(a.exposure, b.exposure));
}

/** The difference of the weights. If both estimates weigh an outcome equally, it cannot change their difference. */
function exposureOf(a: Exposure | undefined, b: Exposure | undefined): Exposure | undefined {
  if (a === undefined || b === undefined) return undefined;
  return {
    weights: a.weights.map((weight, i) => weight - b.weights[i]!),
    units: a.units,
    width: Math.max(a.width, b.width),
  };
}

/** The unit values behind a mean; undefined for ratios, because bounds for means do not cover them. */
export function unitValues(estimate: Estimate): Float64Array | undefined {
  if (estimate.ratios.some((ratio) => ratio.bottom !== undefined)) return undefined;
  if (estimate.ratios.length === 1) return estimate.ratios[0]!.top;
  const values = new Float64Array(estimate.units);
  for (const { top } of estimate.ratios)
    for (let i = 0; i < values.length; i++) values[i] = values[i]! + top[i]!;
  return values;
}

/** Delta method: φᵢ = Σ (topᵢ − v·bottomᵢ) / mean(bottom). It includes the denominator's variance. */
export function influenceOf(estimate: Estimate): Float64Array {
  const influence = new Float64Array(estimate.units);
  for (const ratio of estimate.ratios) {
    const value = ratioValue(ratio, estimate.name);
    const { top, bottom } = ratio;
    const scale = bottom === undefined ? 1 : estimate.units / sum(bottom);
    for (let i = 0; i < influence.length; i++) {
      influence[i] = influence[i]! + (top[i]! - value * (bottom === undefined ? 1 : bottom[i]!)) * scale;
    }
  }
  return influence;
}

export function standardError(estimate: Estimate): number {
  if (estimate.units < 2) return Number.POSITIVE_INFINITY;
  const influence = influenceOf(estimate);
  for (let i = 0; i < influence.length; i++) influence[i] = influence[i]! * influence[i]!;
  return Math.sqrt(sum(influence) / (estimate.units * (estimate.units - 1)));
}

/** Left to right with Neumaier's correction: a fixed order, and no drift on long logs. */
export function sum(values: Float64Array): number {
  let total = 0;
  let lost = 0;
  for (let i = 0; i < values.length; i++) {
    const x = values[i]!;
    const next = total + x;
    lost += Math.abs(total) >= Math.abs(x) ? total - next + x : x - next + total;
    total = next;
  }
  return total + lost;
}

/** The mean term of each unit. */
export function perUnit(terms: Float64Array, units: Units): Float64Array {
  if (units.rows === undefined) return terms;
  const sums = new Float64Array(units.count);
  for (let i = 0; i < terms.length; i++) sums[units.of[i]!] = sums[units.of[i]!]! + terms[i]!;
  for (let unit = 0; unit < sums.length; unit++) sums[unit] = sums[unit]! / units.rows[unit]!;
  return sums;
}

function ratioValue(ratio: Ratio, name: string): number {
  const bottom = ratio.bottom === undefined ? ratio.top.length : sum(ratio.bottom);
  if (bottom > 0) return sum(ratio.top) / bottom;
  throw new RollbookError(
    "no-overlap",
    { estimator: name },
    `${name}: every importance weight is 0, so the log says nothing about the target policy. Log with more exploration.`,
  );
}
