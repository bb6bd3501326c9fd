/** Compares two arms that played the same tasks with the same seeds.
 *  In: the difference of each task in each repetition. Out: the mean difference with its interval. Pure.
 *
 *  Tasks and repetitions are both random: other tasks, or another training log, would have given another mean. The
 *  variance is the sum of both parts, (variance over tasks) / T + (variance over repetitions) / R. The remaining noise
 *  of a cell is in both parts, so the interval is slightly wide, never narrow. Degrees of freedom by Satterthwaite. */
import { RollbookError } from "../../base/index.ts";
import { studentQuantile } from "../ope/index.ts";

/** `cells[repetition][task]`. */
type PairedCells = readonly (readonly number[])[];

export interface PairedDifference {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  readonly level: number;
}

export function pairedDifference(cells: PairedCells, level = 0.95): PairedDifference {
  const repetitions = cells.length;
  const tasks = cells[0]?.length ?? 0;
  if (repetitions < 2 || tasks < 2)
    throw new RollbookError(
      "too-few-repetitions",
      { repetitions, tasks },
      `${repetitions} repetitions of ${tasks} tasks give no interval. Use at least two of each.`,
    );
  const byTask = Array.from({ length: tasks }, (_, task) => meanOf(cells.map((row) => row[task]!)));
  const byRepetition = cells.map(meanOf);
  return interval(meanOf(byRepetition), level, [
    { variance: varianceOf(byTask) / tasks, freedom: tasks - 1 },
    { variance: varianceOf(byRepetition) / repetitions, freedom: repetitions - 1 },
  ]);
}

/** Interval of one repetition: the training log is fixed, tasks are random. */
export function differenceOverTasks(row: readonly number[], level = 0.95): PairedDifference {
  return interval(meanOf(row), level, [{ variance: varianceOf(row) / row.length, freedom: row.length - 1 }]);
}

function interval(
  mean: number,
  level: number,
  parts: readonly { variance: number; freedom: number }[],
): PairedDifference {
  const variance = parts.reduce((sum, part) => sum + part.variance, 0);
  if (variance === 0) return { mean, low: mean, high: mean, level };
  const freedom = variance ** 2 / parts.reduce((sum, part) => sum + part.variance ** 2 / part.freedom, 0);
  const half = studentQuantile((1 + level) / 2, freedom) * Math.sqrt(variance);
  return { mean, low: mean - half, high: mean + half, level };
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function varianceOf(values: readonly number[]): number {
  const mean = meanOf(values);
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
}
