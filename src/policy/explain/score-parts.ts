/** Scores of candidates as sums of parts, one for each feature that a person knows by name.
 *  In: a vector, the mean of each of its places, names, weights. Out: parts that add up. */
import type { SparseVector } from "../features.ts";
import type { NameFeature } from "./feature-names.ts";

export interface FeaturePart {
  readonly feature: string;
  /** What it adds to the score of an average request: weight times the difference in value. */
  readonly part: number;
}

export interface CandidateScore {
  readonly id: string;
  /** False: the policy has never seen it. */
  readonly known: boolean;
  /** Undefined for a candidate it does not know, and for one that a bandit has not tried. */
  readonly score?: number;
  /** Of a bandit: the estimated reward, and what uncertainty adds to it (for Thompson sampling its spread). */
  readonly mean?: number;
  readonly bonus?: number;
  /** Of a bandit that counts: decisions behind the mean. */
  readonly tried?: number;
  /** Its score in an average request, or the mean of a bandit there. Absent: the checkpoint does not know one, and parts count
   *  from 0. */
  readonly usual?: number;
  /** Of a linear policy. With `usual` they add up to the score, or to the mean of a bandit. */
  readonly parts: readonly FeaturePart[];
}

export function unknown(id: string): CandidateScore {
  return { id, known: false, parts: [] };
}

/** How far a place of the vector is from that of an average request; from 0 where that is not known. */
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

/** One part a name: parts that share one add up. */
export function addedUp(parts: readonly FeaturePart[]): FeaturePart[] {
  const sums = new Map<string, number>();
  for (const { feature, part } of parts) sums.set(feature, (sums.get(feature) ?? 0) + part);
  return [...sums].map(([feature, part]) => ({ feature, part }));
}

/** The score of an average request; absent where none is known. */
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

/** What is nearer to 0 is rounding: a constant less its mean. */
const ROUNDING = 1e-12;

export function byWeight(parts: readonly FeaturePart[]): FeaturePart[] {
  return parts
    .filter(({ part }) => Math.abs(part) > ROUNDING)
    .sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
}

export function sum(parts: readonly FeaturePart[]): number {
  return parts.reduce((total, { part }) => total + part, 0);
}
