/** Analyses rewards: distributions by source, arm and term, outliers, saturation, and the effect of a term's weight on
 *  the order of the policies "always this arm".
 *  In: decisions with rewards and terms. Out: plain numbers. Values are self-normalised by propensity if it was logged
 *  for every row, else plain means; the report states which. Pure. */
import { RollbookError } from "../base/index.ts";
import type { LoggedRow } from "../learn/index.ts";
import { outlyingRows } from "./evaluate/index.ts";
import { quantile } from "./ope/index.ts";

export interface RewardedDecision {
  readonly id: string;
  readonly source: string;
  readonly arm: string;
  readonly propensity: number | null;
  readonly reward: number;
  /** A weight of 0: recorded beside the reward, and no part of it. No other weight: the reward is its own only term. */
  readonly terms: Readonly<Record<string, { readonly value: number; readonly weight: number }>>;
}

/** The labelled decisions. Unlabelled decisions are left out. */
export function rewardedOf(rows: readonly LoggedRow[]): RewardedDecision[] {
  return rows.flatMap(({ id, source, candidates, chosen, propensity, reward, terms }) =>
    reward === null ? [] : [{ id, source, arm: candidates[chosen]!.id, propensity, reward, terms }],
  );
}

export interface RewardDistribution {
  readonly count: number;
  readonly mean: number;
  readonly deviation: number;
  readonly min: number;
  readonly p05: number;
  readonly median: number;
  readonly p95: number;
  readonly max: number;
  /** Share of rows at the smallest and at the largest value. A clipped reward accumulates there. */
  readonly atMin: number;
  readonly atMax: number;
}

interface WeightEffect {
  readonly term: string;
  readonly factor: number;
  readonly ranking: readonly string[];
  readonly changed: boolean;
}

export interface RewardReport {
  readonly rows: number;
  readonly values: "self-normalised" | "plain means";
  readonly all: RewardDistribution;
  readonly bySource: Readonly<Record<string, RewardDistribution>>;
  readonly byArm: Readonly<Record<string, RewardDistribution>>;
  /** Terms of the reward, and measures recorded beside it. */
  readonly byTerm: Readonly<Record<string, RewardDistribution>>;
  /** Rows farther from the median than 5 robust deviations.
   *  If those are more than 1 in 20: rows far from all others. */
  readonly outliers: { readonly count: number; readonly ids: readonly string[] };
  /** Values of the policies "always this arm", best first. */
  readonly ranking: readonly { readonly arm: string; readonly value: number }[];
  /** Effects of the terms of the reward. */
  readonly weights: readonly WeightEffect[];
}

const FACTORS = [0, 0.5, 2] as const;
const FAR = 5;
/** Factor from median absolute deviation to standard deviation, for a normal distribution. */
const ROBUST = 1.4826;
const SHOWN = 20;
/** The largest share of rows that can be outliers. */
const STRAYS = 0.05;

export function analyzeRewards(rows: readonly RewardedDecision[]): RewardReport {
  if (rows.length === 0)
    throw new RollbookError(
      "empty-split",
      { rows: 0 },
      "no row has a reward. Record outcomes (`rollbook feedback` adds one to a rollout), or choose other rows.",
    );
  const weighted = rows.every((row) => row.propensity !== null);
  const rank = (term?: string, factor = 1) => rankArms(rows, { weighted, term, factor });
  const base = rank();
  const names = [...new Set(rows.flatMap((row) => Object.keys(termsOf(row))))].sort();
  const weighed = names.filter((name) => rows.some((row) => isPart(termsOf(row)[name])));
  const order = base.map(({ arm }) => arm);
  return {
    rows: rows.length,
    values: weighted ? "self-normalised" : "plain means",
    all: distributionOf(rows.map((row) => row.reward)),
    bySource: groups(rows, (row) => row.source),
    byArm: groups(rows, (row) => row.arm),
    byTerm: Object.fromEntries(
      names.map((name) => [
        name,
        distributionOf(
          rows.flatMap((row) => (termsOf(row)[name] === undefined ? [] : [termsOf(row)[name]!.value])),
        ),
      ]),
    ),
    outliers: outliersOf(rows),
    ranking: base,
    weights: weighed.flatMap((term) =>
      FACTORS.flatMap((factor) => {
        const ranked = rank(term, factor);
        // Without its only term the reward is constant, and the candidates have no order.
        if (factor === 0 && weighed.length === 1 && isTied(ranked)) return [];
        const ranking = ranked.map(({ arm }) => arm);
        return [{ term, factor, ranking, changed: String(ranking) !== String(order) }];
      }),
    ),
  };
}

export function distributionOf(values: readonly number[]): RewardDistribution {
  const sorted = Float64Array.from(values).sort();
  const count = sorted.length;
  const mean = sorted.reduce((sum, each) => sum + each, 0) / count;
  const variance = count < 2 ? 0 : sorted.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (count - 1);
  const [min, max] = [sorted[0]!, sorted[count - 1]!];
  const share = (value: number) => sorted.reduce((sum, each) => sum + (each === value ? 1 : 0), 0) / count;
  return {
    count,
    mean,
    deviation: Math.sqrt(variance),
    min,
    p05: quantile(sorted, 0.05),
    median: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    max,
    atMin: share(min),
    atMax: share(max),
  };
}

function termsOf(row: RewardedDecision): RewardedDecision["terms"] {
  const isWhole = !Object.values(row.terms).some(isPart);
  return isWhole ? { ...row.terms, reward: { value: row.reward, weight: 1 } } : row.terms;
}

function isPart(term: RewardedDecision["terms"][string] | undefined): boolean {
  return term !== undefined && term.weight !== 0;
}

/** The reward with one term's weight multiplied. The part that no term explains (a clip, a bonus) is unchanged. */
function rewardWith(row: RewardedDecision, term: string | undefined, factor: number): number {
  const part = term === undefined ? undefined : termsOf(row)[term];
  return part === undefined ? row.reward : row.reward + (factor - 1) * part.weight * part.value;
}

function isTied(ranked: readonly { readonly value: number }[]): boolean {
  return ranked.every(({ value }) => Math.abs(value - ranked[0]!.value) < 1e-12);
}

function rankArms(
  rows: readonly RewardedDecision[],
  { weighted, term, factor }: { weighted: boolean; term: string | undefined; factor: number },
): { arm: string; value: number }[] {
  const sums = new Map<string, { top: number; bottom: number }>();
  for (const row of rows) {
    const sum = sums.get(row.arm) ?? { top: 0, bottom: 0 };
    const weight = weighted ? 1 / row.propensity! : 1;
    sum.top += weight * rewardWith(row, term, factor);
    sum.bottom += weight;
    sums.set(row.arm, sum);
  }
  return [...sums]
    .map(([arm, { top, bottom }]) => ({ arm, value: top / bottom }))
    .sort((a, b) => b.value - a.value || (a.arm < b.arm ? -1 : 1));
}

function groups(
  rows: readonly RewardedDecision[],
  keyOf: (row: RewardedDecision) => string,
): Record<string, RewardDistribution> {
  const found = new Map<string, number[]>();
  for (const row of rows) {
    const group = found.get(keyOf(row));
    if (group === undefined) found.set(keyOf(row), [row.reward]);
    else group.push(row.reward);
  }
  return Object.fromEntries(
    [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, distributionOf(each)]),
  );
}

function outliersOf(rows: readonly RewardedDecision[]): RewardReport["outliers"] {
  const sorted = Float64Array.from(rows, (row) => row.reward).sort();
  const median = quantile(sorted, 0.5);
  const spread = ROBUST * quantile(sorted.map((each) => Math.abs(each - median)).sort(), 0.5);
  // If more than half of the rows have one value, the robust deviation is 0. With two clusters (right and wrong, less a
  // small cost) the smaller cluster is far from the median but is not an outlier. A row far from both clusters is one.
  const far =
    spread === 0 || isClustered(sorted, FAR * spread)
      ? outlyingRows(rows)
      : rows.filter((row) => Math.abs(row.reward - median) > FAR * spread);
  return { count: far.length, ids: far.slice(0, SHOWN).map((row) => row.id) };
}

/** True if more than one row in twenty is far from the median: too many to be outliers. */
function isClustered(sorted: Float64Array, far: number): boolean {
  const median = quantile(sorted, 0.5);
  const away = sorted.filter((each) => Math.abs(each - median) > far).length;
  return away > STRAYS * sorted.length;
}
