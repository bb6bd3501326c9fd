/** Computes a window of a long list, and a summary of the whole list. Pure: the server and the standalone page run
 *  it. */
import { matchesQuery, type RolloutQuery, type RolloutRow } from "./rollout-row.ts";

type Rows = readonly RolloutRow[];

export interface RolloutWindow {
  /** Number of rollouts in the book; `matched` counts those that the filters keep. */
  readonly total: number;
  readonly matched: number;
  readonly offset: number;
  readonly rows: Rows;
  readonly summary: RolloutSummary;
}

/** Summary of the rollouts that the filters keep. */
export interface RolloutSummary {
  readonly labelled: number;
  readonly meanReward: number | null;
  /** Histogram with bins of equal width from the lowest to the highest reward. */
  readonly rewards: readonly { readonly from: number; readonly to: number; readonly count: number }[];
  readonly endings: readonly { readonly name: string; readonly count: number }[];
}

/** Number of bins in the histogram of rewards. */
const BINS = 20;

export function selectRows(rows: Rows, query: Omit<RolloutQuery, "limit">): Rows {
  const isAll = Object.values(query).every((each) => each === undefined);
  return isAll ? rows : rows.filter((row) => matchesQuery(row, query));
}

export function windowOf(
  all: Rows,
  selected: Rows,
  { offset, limit, summary }: { offset: number; limit: number; summary: RolloutSummary },
): RolloutWindow {
  const rows = selected.slice(offset, offset + limit);
  return { total: all.length, matched: selected.length, offset, rows, summary };
}

export function summaryOf(rows: Rows): RolloutSummary {
  const endings = new Map<string, number>();
  const rewards: number[] = [];
  for (const { ending, score } of rows) {
    endings.set(ending, (endings.get(ending) ?? 0) + 1);
    if (score !== null) rewards.push(score);
  }
  return {
    labelled: rewards.length,
    meanReward: rewards.length === 0 ? null : rewards.reduce((sum, each) => sum + each, 0) / rewards.length,
    rewards: histogram(rewards),
    endings: [...endings].map(([name, count]) => ({ name, count })).sort((a, b) => b.count - a.count),
  };
}

/** Values that occur in the rows, offered as filters. */
export function facetsOf(rows: Rows): { experiments: string[]; models: string[]; endings: string[] } {
  const [experiments, models, endings] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const row of rows) {
    if (row.experiment !== null) experiments.add(row.experiment);
    for (const model of row.models) models.add(model);
    endings.add(row.ending);
  }
  return { experiments: [...experiments].sort(), models: [...models].sort(), endings: [...endings].sort() };
}

function histogram(values: readonly number[]): RolloutSummary["rewards"] {
  if (values.length === 0) return [];
  let [least, most] = [values[0]!, values[0]!];
  for (const value of values) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  const width = (most - least) / BINS;
  if (width === 0) return [{ from: least, to: most, count: values.length }];
  const counts = new Array<number>(BINS).fill(0);
  for (const value of values) counts[Math.min(BINS - 1, Math.floor((value - least) / width))]!++;
  return counts.map((count, i) => ({ from: least + i * width, to: least + (i + 1) * width, count }));
}
