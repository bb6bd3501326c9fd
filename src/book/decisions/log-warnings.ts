/** Warns if a log is unfit for training or evaluation. It counts units, not rows: a task that was asked a thousand
 *  times is one piece of evidence about tasks. Pure. */
import { plural } from "../../base/index.ts";
import type { SplitUnit } from "../../contract/index.ts";
import { CERTAIN_LOG, ENOUGH_UNITS, smallLogRemedy } from "../../judge/ope/index.ts";

/** Share of the units that the default split uses for training. */
const TRAIN_SHARE = 0.6;

interface LogSize {
  readonly rows: number;
  readonly units: number;
  /** Largest number of candidates of a decision. */
  readonly candidates: number;
  /** Lowest propensity of a choice; null if none was logged. */
  readonly leastPropensity: number | null;
  /** True if every row has the outcomes of all candidates: `data check` then has no limit either. */
  readonly isFull?: boolean;
  readonly purpose: "dataset" | "train";
  /** Kind of unit (default: task). */
  readonly unit?: SplitUnit | undefined;
}

export function logWarnings({
  rows,
  units,
  candidates,
  leastPropensity,
  isFull = false,
  purpose,
  unit,
}: LogSize): string[] {
  const needed = purpose === "train" ? TRAIN_SHARE * ENOUGH_UNITS : ENOUGH_UNITS;
  const aim = purpose === "train" ? " to learn from" : "";
  return [
    ...(units > 0 && candidates < 2
      ? [
          "every decision had one candidate, so there is no choice to learn or to compare. Log decisions among two or more",
        ]
      : []),
    ...(candidates >= 2 && leastPropensity === 1 ? [CERTAIN_LOG] : []),
    ...(units < needed && !isFull
      ? [`only ${plural(units, unit ?? "task")}${aim}. ${smallLogRemedy({ unit, counted: { rows, units } })}`]
      : []),
  ];
}
