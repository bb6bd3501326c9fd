/** Summarises the results of a launch for its agent.
 *  In: outcomes. Out: pass@k, rewards with an interval, failures by reason; and two experiments compared task by task.
 *  A task counts once, regardless of its number of samples. Pure.
 *  Failures of provider, sandbox and infrastructure, failed tasks and cancellations are no evidence about the agent:
 *  they are counted separately. A failure of the agent, or a rollout stopped by a limit, does not pass without a
 *  reward. */
import { type Ending, type FailureOwner, outsideBaseline } from "../../contract/index.ts";
import { correctedInterval, estimateOf } from "../../judge/ope/index.ts";
import type { LaunchOutcome } from "./launch-outcomes.ts";

/** Default minimum reward of a rollout that passes. */
export const PASS_REWARD = 0.5;
const LEVEL = 0.95;
/** Minimum number of tasks for an interval. With two tasks, one passed and one failed, the interval would be wider than
 *  the scale. */
export const LEAST_TASKS = 5;

interface TaskReport {
  readonly task: string;
  readonly taskTitle: string | null;
  readonly rollouts: number;
  /** Rollouts that are evidence about the agent. */
  readonly judged: number;
  readonly passed: number;
  /** Probability that at least one of k samples passes, for k = 1 and k = all judged samples; null if none was
   *  judged. */
  readonly passAt1: number | null;
  readonly passAtAll: number | null;
  /** Mean over labelled rollouts; null if none is labelled. */
  readonly meanReward: number | null;
  readonly failed: number;
}

export interface MeanInterval {
  readonly mean: number;
  /** Null with fewer than five tasks. */
  readonly low: number | null;
  readonly high: number | null;
  readonly level: number;
  readonly tasks: number;
  /** True if the interval was made wider for rare rewards that the tasks may not show. */
  readonly corrected: boolean;
}

interface FailureReason {
  readonly owner: FailureOwner;
  /** First message of this kind; others may differ in numbers. */
  readonly message: string;
  readonly count: number;
}

export interface LaunchReport {
  readonly passReward: number;
  /** Means over tasks; k is 1 and the number of samples that every task has. Empty if no rollout is judged. */
  readonly passAt: readonly { readonly k: number; readonly value: number }[];
  /** Mean of the tasks' mean rewards; null if no rollout is labelled. */
  readonly reward: MeanInterval | null;
  /** Quartiles of the rewards of all rollouts. */
  readonly quartiles: readonly [min: number, q1: number, median: number, q3: number, max: number] | null;
  readonly unlabelled: number;
  /** Rollouts that are no evidence about the agent; counted separately. */
  readonly outside: number;
  readonly failures: readonly FailureReason[];
  /** Sorted by mean reward, lowest first. */
  readonly tasks: readonly TaskReport[];
}

export function reportLaunch(
  outcomes: readonly LaunchOutcome[],
  { passReward = PASS_REWARD }: { passReward?: number | undefined } = {},
): LaunchReport {
  const tasks = [...byTask(outcomes).values()].map((each) => taskReport(each, passReward));
  const judged = tasks.filter(({ judged }) => judged > 0);
  const ks = [
    ...new Set([1, judged.reduce((least, each) => Math.min(least, each.judged), Number.MAX_VALUE)]),
  ];
  const means = tasks.flatMap(({ meanReward }) => (meanReward === null ? [] : [meanReward]));
  const rewards = rewardsIn(outcomes).sort((a, b) => a - b);
  return {
    passReward,
    passAt:
      judged.length === 0
        ? []
        : ks.map((k) => ({ k, value: mean(judged.map((each) => passAtK(each.judged, each.passed, k))) })),
    reward: meanInterval(means, rewardWidth(rewards), isShare(rewards) ? [0, 1] : undefined),
    quartiles: quartilesOf(rewards),
    unlabelled: outcomes.filter((each) => each.reward === null && !isOutside(each)).length,
    outside: outcomes.filter(isOutside).length,
    failures: failureReasons(outcomes.map(({ ending }) => ending)),
    tasks: tasks.sort((a, b) => (a.meanReward ?? -Infinity) - (b.meanReward ?? -Infinity)),
  };
}

interface TaskDifference {
  readonly task: string;
  readonly taskTitle: string | null;
  readonly a: number;
  readonly b: number;
  readonly difference: number;
}

export interface LaunchComparison {
  readonly a: LaunchReport;
  readonly b: LaunchReport;
  /** Mean reward of B minus A, over the tasks that have rewards in both; null if there is no such task. */
  readonly difference: MeanInterval | null;
  readonly better: number;
  readonly worse: number;
  readonly equal: number;
  /** Tasks that only one of the experiments has. */
  readonly onlyA: number;
  readonly onlyB: number;
  /** Tasks of both experiments, without a reward in one of them or in both. */
  readonly unrewarded: number;
  /** Sorted by the size of the change, largest first. */
  readonly tasks: readonly TaskDifference[];
}

export function compareLaunches(
  outcomes: { readonly a: readonly LaunchOutcome[]; readonly b: readonly LaunchOutcome[] },
  options: { passReward?: number | undefined } = {},
): LaunchComparison {
  const [a, b] = [reportLaunch(outcomes.a, options), reportLaunch(outcomes.b, options)];
  const rewardsOf = ({ tasks }: LaunchReport) =>
    new Map(tasks.flatMap((each) => (each.meanReward === null ? [] : [[each.task, each] as const])));
  const [inA, inB] = [rewardsOf(a), rewardsOf(b)];
  const pairs: TaskDifference[] = [];
  for (const [task, of] of inA) {
    const other = inB.get(task);
    if (other === undefined) continue;
    const [before, after] = [of.meanReward!, other.meanReward!];
    pairs.push({ task, taskTitle: of.taskTitle, a: before, b: after, difference: after - before });
  }
  const tasksOfA = new Set(a.tasks.map(({ task }) => task));
  const shared = b.tasks.filter(({ task }) => tasksOfA.has(task)).length;
  const scale = isShare(pairs.flatMap((each) => [each.a, each.b])) ? ([-1, 1] as const) : undefined;
  return {
    ...{ a, b },
    difference: meanInterval(
      pairs.map(({ difference }) => difference),
      differenceWidth(pairs),
      scale,
    ),
    better: pairs.filter(({ difference }) => difference > 0).length,
    worse: pairs.filter(({ difference }) => difference < 0).length,
    equal: pairs.filter(({ difference }) => difference === 0).length,
    onlyA: a.tasks.length - shared,
    onlyB: b.tasks.length - shared,
    unrewarded: shared - pairs.length,
    tasks: pairs.sort((x, y) => Math.abs(y.difference) - Math.abs(x.difference)),
  };
}

/** Unbiased estimate from n samples, c of them passing: 1 − C(n−c, k) / C(n, k) (Chen et al. 2021, equation 1). */
export function passAtK(n: number, passed: number, k: number): number {
  let noneOfK = 1;
  for (let i = 0; i < k; i++) noneOfK *= Math.max(0, n - passed - i) / (n - i);
  return 1 - noneOfK;
}

function byTask(outcomes: readonly LaunchOutcome[]): Map<string, LaunchOutcome[]> {
  const tasks = new Map<string, LaunchOutcome[]>();
  for (const outcome of outcomes) {
    const known = tasks.get(outcome.task);
    if (known === undefined) tasks.set(outcome.task, [outcome]);
    else known.push(outcome);
  }
  return tasks;
}

function taskReport(outcomes: readonly LaunchOutcome[], passReward: number): TaskReport {
  const judged = outcomes.filter(isJudged);
  const passed = judged.filter(({ reward }) => reward !== null && reward >= passReward).length;
  const rewards = rewardsIn(outcomes);
  const n = judged.length;
  return {
    ...{ task: outcomes[0]!.task, taskTitle: outcomes[0]!.taskTitle },
    ...{ rollouts: outcomes.length, judged: n, passed },
    passAt1: n === 0 ? null : passAtK(n, passed, 1),
    passAtAll: n === 0 ? null : passAtK(n, passed, n),
    meanReward: rewards.length === 0 ? null : mean(rewards),
    failed: outcomes.filter(({ ending }) => ending.kind === "failed").length,
  };
}

/** A failure of others says nothing of the agent, even if it has a reward. */
function rewardsIn(outcomes: readonly LaunchOutcome[]): number[] {
  return outcomes.flatMap((each) => (each.reward === null || isOutside(each) ? [] : [each.reward]));
}

function isOutside({ ending }: LaunchOutcome): boolean {
  return outsideBaseline(ending) !== undefined;
}

/** An unlabelled rollout that ended normally is no evidence yet. A failure of the agent or a stop by a limit is
 *  evidence. */
function isJudged(outcome: LaunchOutcome): boolean {
  return !isOutside(outcome) && (outcome.ending.kind !== "terminal" || outcome.reward !== null);
}

/** Sorted by count, most common reason first. Messages that differ only in numbers are one reason. */
export function failureReasons(endings: readonly Ending[]): FailureReason[] {
  const reasons = new Map<string, FailureReason>();
  for (const ending of endings) {
    if (ending.kind !== "failed") continue;
    const { owner, message } = ending;
    const key = `${owner}: ${message.split("\n")[0]!.replaceAll(/[0-9a-f]*\d[0-9a-f]*/gi, "#")}`;
    const known = reasons.get(key);
    reasons.set(key, { owner, message: known?.message ?? message, count: (known?.count ?? 0) + 1 });
  }
  return [...reasons.values()].sort((a, b) => b.count - a.count);
}

/** Same interval as in the judge: a t interval, widened if the tasks are few, skewed or all equal. Equal rewards of all
 *  tasks do not prove that the next task earns the same. Ends outside the scale, if there is one, are clipped to it. */
function meanInterval(
  values: readonly number[],
  width: number,
  [least, most]: readonly [least: number, most: number] = [-Infinity, Infinity],
): MeanInterval | null {
  if (values.length === 0) return null;
  const count = values.length;
  const units = { count, of: Int32Array.from(values.keys()), rows: undefined };
  const exposure = { weights: new Float64Array(count).fill(1), units, width };
  const estimate = estimateOf("mean", [{ top: Float64Array.from(values), bottom: undefined }], exposure);
  const { low, high, corrected = false } = correctedInterval(estimate, LEVEL);
  const isKnown = values.length >= LEAST_TASKS;
  return {
    mean: estimate.value,
    low: isKnown ? Math.max(least, low) : null,
    high: isKnown ? Math.min(most, high) : null,
    ...{ level: LEVEL, tasks: values.length, corrected: isKnown && corrected },
  };
}

/** If all rewards are between 0 and 1, the scale is assumed to be 0 to 1. */
function isShare(rewards: readonly number[]): boolean {
  return rewards.every((each) => each >= 0 && each <= 1);
}

/** Largest possible difference of two outcomes of a task: the range of the seen rewards and 0, the reward of a failed
 *  task. If all rewards are 0, the width is 1, the assumed reward of a pass. */
function rewardWidth(rewards: readonly number[]): number {
  const high = rewards.reduce((most, each) => Math.max(most, each), 0);
  const low = rewards.reduce((least, each) => Math.min(least, each), 0);
  return high > low ? high - low : 1;
}

/** Largest possible difference of two paired differences. If all tasks differ by the same amount, the width of the
 *  rewards is used. */
function differenceWidth(pairs: readonly TaskDifference[]): number {
  const seen = pairs.map(({ difference }) => difference);
  const rewards = rewardWidth(pairs.flatMap(({ a, b }) => [a, b]));
  const width = Math.max(...seen) - Math.min(...seen);
  return width > ROUNDING * rewards ? width : rewards;
}

/** A width below this fraction of the reward width is rounding. */
const ROUNDING = 1e-9;

function quartilesOf(sorted: readonly number[]): LaunchReport["quartiles"] {
  if (sorted.length === 0) return null;
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  return [sorted[0]!, at(0.25), at(0.5), at(0.75), sorted.at(-1)!];
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}
