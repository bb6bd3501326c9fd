/** Scores of candidates as sums of parts, one for each named feature.
 *  In: a vector, the mean of each of its places, names, weights. Out: parts that add up. */
import type { SparseVector } from "../features.ts";
import type { NameFeature } from "./feature-names.ts";

export interface FeaturePart {
  readonly feature: string;
  /** Difference from the score of an average request: weight times the difference in value. */
  readonly part: number;
}

export interface CandidateScore {
  readonly id: string;
  /** False: the policy has never seen the candidate. */
  readonly known: boolean;
  /** Undefined for a candidate that the policy does not know, and for a candidate that a bandit has not tried. */
  readonly score?: number;
  /** A bandit's estimated reward, and the bonus for uncertainty (for Thompson sampling: the spread). */
  readonly mean?: number;
  readonly bonus?: number;
  /** Number of decisions behind the mean, for a bandit that counts them. */
  readonly tried?: number;
  /** The candidate's score (for a bandit: its mean) in an average request. Absent: the checkpoint has no average
   *  request, and parts count from 0. */
  readonly usual?: number;
  /** Parts of a linear policy. Together with `usual` they add up to the score (for a bandit: to the mean). */
  readonly parts: readonly FeaturePart[];
}

export function unknown(id: string): CandidateScore {
  return { id, known: false, parts: [] };
}

/** Difference of a place of the vector from the average request, or from 0 if the average is not known. */
interface Departure {
  readonly names: readonly string[];
  readonly index: number;
  readonly value: number;
}

export function departuresOf(
  { indices, values, count }: SparseVector,
  { means, nameOf }: { means: Float64Array | undefined; nameOf: NameFeature },
): Departure[] {
  const places = new Map<number, number>();
  means?.forEach((mean, index) => {
    if (mean !== 0) places.set(index, -mean);
  });
  for (let e = 0; e < count; e++) places.set(indices[e]!, (places.get(indices[e]!) ?? 0) + values[e]!);
  return [...places].map(([index, value]) => ({ names: nameOf(index), index, value }));
}

export function partsOf(
  departures: readonly Departure[],
  weightOf: (index: number) => number,
): FeaturePart[] {
  return addedUp(
    departures.flatMap(({ names, index, value }) =>
      names.map((feature) => ({ feature, part: (weightOf(index) * value) / names.length })),
    ),
  );
}

/** Adds up the parts that share a name. */
export function addedUp(parts: readonly FeaturePart[]): FeaturePart[] {
  const sums = new Map<string, number>();
  for (const { feature, part } of parts) sums.set(feature, (sums.get(feature) ?? 0) + part);
  return [...sums].map(([feature, part]) => ({ feature, part }));
}

/** The score of an average request; absent if no average request is known. */
export function usualOf(
  means: Float64Array | undefined,
  weightOf: (index: number) => number,
): { usual?: number } {
  if (means === undefined) return {};
  let usual = 0;
  means.forEach((mean, index) => {
    usual += weightOf(index) * mean;
  });
  return { usual };
}

/** Smaller parts are rounding errors of a constant minus its mean. */
const ROUNDING = 1e-12;

export function byWeight(parts: readonly FeaturePart[]): FeaturePart[] {
  return parts
    .filter(({ part }) => Math.abs(part) > ROUNDING)
    .sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
}

export function sum(parts: readonly FeaturePart[]): number {
  return parts.reduce((total, { part }) => total + part, 0);
}
