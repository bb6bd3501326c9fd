/** The required size of a log: the figure that every warning and refusal of a small log names. */
import type { SplitUnit } from "../../contract/index.ts";

/** Units of the whole log, all parts of its split. With fewer units a learned router can hardly be judged. In a
 *  60/20/20 split with a calibrated floor, a fifth of them judge. If a quarter of that fifth matches the policy, the
 *  effective sample size is the 50 that an estimate needs. Rows of one unit are not independent evidence. */
export const ENOUGH_UNITS = 1000;

/** Number of these units that judge. They are enough for a target without training. */
const FEWEST_TO_JUDGE = ENOUGH_UNITS / 5;

/** Share of a 60/20/20 split that judges if no floor is calibrated. */
const JUDGE_SHARE = 0.4;

/** The share of a log that judges. Units of the calibration part judge too, unless a floor was calibrated on them. A
 *  split without a judge part does not determine the share: the default is used. */
export function judgeShareOf(
  [, calibration, judge]: readonly [number, number, number],
  { isCalibrated }: { readonly isCalibrated: boolean },
): number {
  return (isCalibrated ? judge : calibration + judge) || JUDGE_SHARE;
}

/** Number of judging units in a log of enough units. */
export function enoughToJudge(judgeShare = JUDGE_SHARE): number {
  return judgeShare * ENOUGH_UNITS;
}

interface SmallLog {
  /** Number of judging units that would suffice, if the log shows it. */
  readonly judging?: number | null;
  /** 1: no training on the log. */
  readonly judgeShare?: number | undefined;
  /** Kind of unit (default: a task). */
  readonly unit?: SplitUnit | undefined;
  /** Number of rows and units of the log, if known. */
  readonly counted?: { readonly rows: number; readonly units: number } | undefined;
}

/** The next step for a log that is too small, without a full stop. */
export function smallLogRemedy(log: SmallLog = {}): string {
  const purpose = log.judgeShare === 1 ? "" : " to train a router and judge it";
  const { rows, units } = log.counted ?? { rows: 0, units: 0 };
  const several = rows > units ? `. Several ${UNITS[log.unit ?? "task"][1]}` : "";
  return `Record about ${enoughUnits(log)}${purpose}${several}`;
}

/** The required number of units as text: `1000 different tasks`. */
export function enoughUnits({ judging = null, judgeShare = JUDGE_SHARE, unit }: SmallLog = {}): string {
  const units = Math.max(
    judgeShare === 1 ? FEWEST_TO_JUDGE : ENOUGH_UNITS,
    judging === null ? 0 : roundUp(judging / judgeShare),
  );
  return `${units} ${UNITS[unit ?? "task"][0]}`;
}

/** Name of the units, and the rows that count as one unit. The unit of decisions is their rollout. */
const UNITS: Readonly<Record<SplitUnit, readonly [string, string]>> = {
  task: [
    "different tasks",
    "rows of one task count once, unless rows are split by decision (`train` and `data check`: --unit decision; a loop: `split: { unit: decision }`)",
  ],
  session: ["different sessions", "rows of one session count once"],
  decision: ["decisions", "decisions of one rollout count once"],
};

/** Rounded up to two digits: a log does not determine more. */
function roundUp(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return Math.ceil(value / unit) * unit;
}

/** Explanation for a log where every choice has probability 1, without a full stop. */
export const CERTAIN_LOG =
  "the logged probability of every choice is 1, so the log says nothing about other choices. Log the probability that the router gave to its choice; if it never varies its choices, let it explore";
