/** Whether a log can teach and judge anything: warnings in words. It counts units, not rows: a task that was asked a
 *  thousand times is one piece of evidence about tasks. Pure. */
import { plural } from "../../base/index.ts";
import { RECOMMENDED_UNITS } from "../../convert/index.ts";

/** Of the recommended units, those that the default split trains from. */
const TRAIN_SHARE = 0.6;

export interface LogSize {
  readonly units: number;
  /** The most that any decision could choose among. */
  readonly candidates: number;
  readonly purpose: "dataset" | "train";
}

export function logWarnings({ units, candidates, purpose }: LogSize): string[] {
  const needed = purpose === "train" ? TRAIN_SHARE * RECOMMENDED_UNITS : RECOMMENDED_UNITS;
  const aim = purpose === "train" ? "learn from" : "train a router and judge it";
  return [
    ...(units > 0 && candidates < 2
      ? [
          "every decision had one candidate, so there is no choice to learn or to compare. Log decisions among two or more",
        ]
      : []),
    ...(units < needed
      ? [
          `${plural(units, "unit")}, fewer than the about ${needed} it takes to ${aim}. Log more different tasks; rows of one task count once`,
        ]
      : []),
  ];
}
