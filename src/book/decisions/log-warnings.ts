/** Whether a log can teach and judge anything: warnings in words. It counts units, not rows: a task that was asked a
 *  thousand times is one piece of evidence about tasks. Pure. */
import { plural } from "../../base/index.ts";
import type { SplitUnit } from "../../contract/index.ts";
import { CERTAIN_LOG, ENOUGH_UNITS, smallLogRemedy } from "../../judge/ope/index.ts";

/** Of a log of enough units, those that the default split trains from. */
const TRAIN_SHARE = 0.6;

interface LogSize {
  readonly units: number;
  /** The most that any decision could choose among. */
  readonly candidates: number;
  /** Of the choices; null where none was logged. */
  readonly leastPropensity: number | null;
  readonly purpose: "dataset" | "train";
  /** What a unit is (default: a task). */
  readonly unit?: SplitUnit | undefined;
}

export function logWarnings({ units, candidates, leastPropensity, purpose, unit }: LogSize): string[] {
  const needed = purpose === "train" ? TRAIN_SHARE * ENOUGH_UNITS : ENOUGH_UNITS;
  const aim = purpose === "train" ? " to learn from" : "";
  return [
    ...(units > 0 && candidates < 2
      ? [
          "every decision had one candidate, so there is no choice to learn or to compare. Log decisions among two or more",
        ]
      : []),
    ...(candidates >= 2 && leastPropensity === 1 ? [CERTAIN_LOG] : []),
    ...(units < needed ? [`only ${plural(units, unit ?? "task")}${aim}. ${smallLogRemedy({ unit })}`] : []),
  ];
}
