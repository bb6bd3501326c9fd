/** Summarises results of simulated rollouts by family: pass rate with an interval, reward and cost. Pure. */
import type { RolloutResult, SealedResult } from "../../collect/rollout/index.ts";
import type { SimWorld } from "../../collect/sim/index.ts";

export interface FamilySummary {
  readonly family: string;
  /** Counted rollouts: sealed, and not failed by provider, sandbox, infrastructure or task. */
  readonly rollouts: number;
  readonly passed: number;
  readonly passRate: number;
  /** Wilson interval at 95 %. */
  readonly interval: readonly [number, number];
  readonly meanReward: number | null;
  readonly costUsd: number;
}

const Z_95 = 1.959963984540054;

/** One summary per family in order of name, and a total at the end. */
export function summarise(results: readonly RolloutResult[], { tasks }: SimWorld): FamilySummary[] {
  const counted = results.filter((each): each is SealedResult => each.state === "sealed" && isCounted(each));
  const familyOf = ({ row }: SealedResult) => tasks[row]!.task.oracle.family;
  const families = [...new Set(counted.map(familyOf))].sort();
  return [
    ...families.map((family) =>
      summaryOf(
        family,
        counted.filter((each) => familyOf(each) === family),
      ),
    ),
    summaryOf("all", counted),
  ];
}

/** Wilson's score interval: accurate also near 0 and 1, and for few rollouts. */
function wilson(passed: number, total: number, z = Z_95): readonly [number, number] {
  if (total === 0) return [0, 1];
  const rate = passed / total;
  const spread = (z * z) / total;
  const middle = (rate + spread / 2) / (1 + spread);
  const half = (z * Math.sqrt((rate * (1 - rate)) / total + spread / (4 * total))) / (1 + spread);
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

export interface ObservedReward {
  readonly count: number;
  /** Null if no rollout was labelled. */
  readonly mean: number | null;
  /** Interval at 95 %, from the standard error; null for fewer than two rewards. */
  readonly interval: readonly [number, number] | null;
}

/** Mean of the labelled rewards. */
export function meanReward(results: readonly RolloutResult[]): ObservedReward {
  const rewards = results.flatMap((each) =>
    each.state === "sealed" && each.reward !== null ? [each.reward] : [],
  );
  const count = rewards.length;
  if (count === 0) return { count, mean: null, interval: null };
  const mean = rewards.reduce((sum, each) => sum + each, 0) / count;
  if (count === 1) return { count, mean, interval: null };
  const spread = rewards.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (count - 1);
  const half = Z_95 * Math.sqrt(spread / count);
  return { count, mean, interval: [mean - half, mean + half] };
}

export function sayObserved({ mean, interval }: ObservedReward): string {
  if (mean === null) return "nothing";
  const [low, high] = interval?.map((each) => each.toFixed(4)) ?? [];
  return interval === null ? mean.toFixed(4) : `${mean.toFixed(4)} (95 %: ${low} … ${high})`;
}

/** The standard error of fewer rewards is too uncertain: two rewards that happen to be close would make any mean look wrong. */
const MIN_REWARDS = 30;

/** Distance of the mean from an exact value in standard errors; null for few rewards, or rewards without spread. */
export function standardErrors({ count, mean, interval }: ObservedReward, exact: number): number | null {
  if (count < MIN_REWARDS || mean === null || interval === null || interval[1] === mean) return null;
  return ((mean - exact) * Z_95) / (interval[1] - mean);
}

/** By chance, one interval of 95 % in twenty misses its value; three standard errors miss it once in 370. */
export function sayDistance(z: number | null): string {
  if (z === null) return "";
  const said = Math.abs(z) <= 3 ? "within chance" : "more than chance would explain";
  return `${Math.abs(z).toFixed(1)} standard errors ${z < 0 ? "below" : "above"} the exact value of the behaviour: ${said}\n`;
}

function isCounted({ ending }: SealedResult): boolean {
  return ending.kind !== "cancelled" && (ending.kind !== "failed" || ending.owner === "agent");
}

function summaryOf(family: string, results: readonly SealedResult[]): FamilySummary {
  const passed = results.filter(({ scores }) =>
    scores.some(({ name, value }) => name === "quality" && value === 1),
  ).length;
  const rewards = results.flatMap(({ reward }) => (reward === null ? [] : [reward]));
  return {
    family,
    rollouts: results.length,
    passed,
    passRate: results.length === 0 ? 0 : passed / results.length,
    interval: wilson(passed, results.length),
    meanReward: rewards.length === 0 ? null : rewards.reduce((sum, each) => sum + each, 0) / rewards.length,
    costUsd: results.reduce((sum, { usage }) => sum + usage.costUsd, 0),
  };
}
