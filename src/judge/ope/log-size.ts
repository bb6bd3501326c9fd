/** How large a log must be: the one figure that every warning and refusal of a small log names. */
import type { SplitUnit } from "../../contract/index.ts";

/** Units of the whole log, all parts of its split. With fewer a learned router can hardly be judged. Split 60/20/20 with a floor
 *  calibrated, a fifth of them judge. Where a quarter of those speak of the policy, the effective sample size is the 50 that an
 *  estimate needs. Rows of one unit are no independent evidence. */
export const ENOUGH_UNITS = 1000;

/** Of these, the units that judge. They are enough for a target that nothing is trained for. */
const FEWEST_TO_JUDGE = ENOUGH_UNITS / 5;

/** Of a log split 60/20/20 that no floor is calibrated on, the share that judges. */
const JUDGE_SHARE = 0.4;

/** The share of a log that judges. Units of the calibration part judge, too, unless a floor was calibrated on them. A split
 *  without a judge part says nothing of the log that judges: the default stands for it. */
export function judgeShareOf(
  [, calibration, judge]: readonly [number, number, number],
  { isCalibrated }: { readonly isCalibrated: boolean },
): number {
  return (isCalibrated ? judge : calibration + judge) || JUDGE_SHARE;
}

/** Units to judge by that a log of enough units has. */
export function enoughToJudge(judgeShare = JUDGE_SHARE): number {
  return judgeShare * ENOUGH_UNITS;
}

interface SmallLog {
  /** Units to judge by that would do, where the log shows how many. */
  readonly judging?: number | null;
  /** 1: nothing is trained from the log. */
  readonly judgeShare?: number | undefined;
  /** What a unit is (default: a task). */
  readonly unit?: SplitUnit | undefined;
}

/** The next step for a log that is too small, without a full stop. */
export function smallLogRemedy(log: SmallLog = {}): string {
  const purpose = log.judgeShare === 1 ? "" : " to train a router and judge it";
  return `Record about ${enoughUnits(log)}${purpose}. Several ${UNITS[log.unit ?? "task"][1]}`;
}

/** How many units would do: `1000 different tasks`. */
export function enoughUnits({ judging = null, judgeShare = JUDGE_SHARE, unit }: SmallLog = {}): string {
  const units = Math.max(
    judgeShare === 1 ? FEWEST_TO_JUDGE : ENOUGH_UNITS,
    judging === null ? 0 : roundUp(judging / judgeShare),
  );
  return `${units} ${UNITS[unit ?? "task"][0]}`;
}

/** What counts, and what counts once. The unit of decisions is the rollout that they belong to. */
const UNITS: Readonly<Record<SplitUnit, readonly [string, string]>> = {
  task: ["different tasks", "rows of one task count once, unless you train with --unit decision"],
  session: ["different sessions", "rows of one session count once"],
  decision: ["decisions", "decisions of one rollout count once"],
};

/** To two digits: what a log shows is no more exact than that. */
function roundUp(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return Math.ceil(value / unit) * unit;
}

/** Of a log where every choice has the probability 1, without a full stop. */
export const CERTAIN_LOG =
  "the logged probability of every choice is 1, so the log says nothing about other choices. Log the probability that the router gave to its choice; if it never varies its choices, let it explore";
