/** Renders a launch: one line while it runs, tables when it is over.
 *  In: progress, reports. Out: text. */
import {
  type LaunchComparison,
  type LaunchReport,
  LEAST_TASKS,
  type MeanInterval,
} from "../../book/collect/index.ts";
import type { Progress } from "../../collect/rollout/index.ts";
import { figure, page, plural, table, thousands } from "../format.ts";

/** Makes `done 12/64 failed 2 (agent 1, provider 1) 1 234 tokens $0.01 3.2/s 16 s left`. */
export function renderProgress(progress: Progress): string {
  const { done, total, tokens, perSecond, etaMs, dead } = progress;
  return [
    `done ${done}/${total}`,
    ...failedText(progress),
    ...(dead > 0 ? [`${dead} set aside`] : []),
    ...(tokens > 0 ? [`${thousands(tokens)} tokens`] : []),
    ...costText(progress),
    `${perSecond.toFixed(1)}/s`,
    etaMs === null ? "…" : `${duration(etaMs)} left`,
  ].join("  ");
}

export function renderSummary(progress: Progress): string {
  const { done, total, earlier, tokens, meanReward, truncated, dead } = progress;
  const parts = [
    `${thousands(done)} of ${plural(total, "rollout")} sealed`,
    ...(earlier > 0 ? [`${thousands(earlier)} of them earlier`] : []),
    ...(truncated > 0 ? [`${truncated} truncated`] : []),
    ...failedText(progress),
    ...(dead > 0 ? [`${dead} set aside`] : []),
    ...(meanReward === null ? ["no rewards"] : [`mean reward ${figure(meanReward)}`]),
    ...(tokens > 0 ? [`${thousands(tokens)} tokens`] : []),
    ...costText(progress),
  ];
  return `${parts.join(", ")}\n${givenUpText(progress)}`;
}

/** An unknown cost must not be shown as 0. */
function costText({ costUsd, unpriced }: Pick<Progress, "costUsd" | "unpriced">): string[] {
  if (unpriced === 0) return costUsd > 0 ? [`$${figure(costUsd)}`] : [];
  const without = `${plural(unpriced, "call")} without a price`;
  return [costUsd > 0 ? `at least $${figure(costUsd)} (${without})` : `cost unknown (${without})`];
}

/** Line about earlier attempts, which the figures above do not include. */
function givenUpText({ givenUp }: Progress): string {
  const { runs, tokens } = givenUp;
  if (runs === 0) return "";
  const spent = [...(tokens > 0 ? [`${thousands(tokens)} tokens`] : []), ...costText(givenUp)];
  const more = spent.length === 0 ? "" : `; not counted above: ${spent.join(", ")}`;
  return `${plural(runs, "earlier attempt")} of these rollouts failed or ended early${more}\n`;
}

/** Number of tasks in a table; --json has all of them. */
const SHOWN = 10;
const MAX_MESSAGE = 300;

/** Report by task and by failure reason; empty if there is no task. */
export function renderLaunchReport(report: LaunchReport): string {
  const { reward, quartiles, tasks, unlabelled, outside } = report;
  if (tasks.length === 0) return "";
  const lines = [
    `${plural(tasks.length, "task")}${passText(report)}`,
    ...(reward === null ? [] : [`mean reward over tasks ${intervalText(reward)}`]),
    ...(quartiles === null
      ? []
      : [`rewards: lowest, quartiles, highest ${quartiles.map(figure).join(" / ")}`]),
    // Without any reward, the line before has said so.
    ...(unlabelled > 0 && reward !== null ? [`${plural(unlabelled, "rollout")} without a reward`] : []),
    ...(outside > 0
      ? [`no result of the agent in ${plural(outside, "rollout")} (failed by others, or cancelled)`]
      : []),
  ];
  return [page(lines), taskTable(report), renderFailures(report)].join("");
}

export function renderComparison(
  { a, b, difference, better, worse, equal, onlyA, onlyB, unrewarded, tasks }: LaunchComparison,
  names: { readonly a: string; readonly b: string },
): string {
  const left = [
    ...(onlyA > 0 ? [`${onlyA} only in A`] : []),
    ...(onlyB > 0 ? [`${onlyB} only in B`] : []),
    ...(unrewarded > 0 ? [`${unrewarded} without a reward in A or in B`] : []),
  ];
  const changed = tasks.filter((each) => each.difference !== 0).slice(0, SHOWN);
  const sides = [
    { name: names.a, report: a },
    { name: names.b, report: b },
  ];
  const overview = table(sides, [
    { title: "EXPERIMENT", cell: ({ name }) => name },
    { title: "TASKS", align: "right", cell: ({ report }) => thousands(report.tasks.length) },
    { title: "PASS@1", align: "right", cell: ({ report }) => figureOr(report.passAt[0]?.value) },
    { title: "MEAN REWARD", align: "right", cell: ({ report }) => figureOr(report.reward?.mean) },
    { title: "FAILED", align: "right", cell: ({ report }) => thousands(failuresOf(report)) },
  ]);
  const byTask = table(changed, [
    { title: "TASK", cell: ({ task, taskTitle }) => taskName(task, taskTitle) },
    { title: "A", align: "right", cell: (each) => figure(each.a) },
    { title: "B", align: "right", cell: (each) => figure(each.b) },
    { title: "B − A", align: "right", cell: (each) => figure(each.difference) },
  ]);
  const verdict = [
    ...(difference === null
      ? ["no task has rewards in both experiments"]
      : [
          `B − A, paired by task: ${intervalText(difference)}`,
          `${better} better, ${worse} worse, ${equal} equal`,
          verdictOn(difference, names),
        ]),
    ...(left.length > 0 ? [`tasks not compared: ${left.join(", ")}`] : []),
  ];
  return `${overview}\n${changed.length === 0 ? "" : `${byTask}\n`}${page(verdict)}`;
}

function verdictOn({ low, high }: MeanInterval, { a, b }: { a: string; b: string }): string {
  if (low === null || high === null)
    return `${plural(LEAST_TASKS, "task")} or more are needed for an interval.`;
  if (low > 0) return `${b} earns more than ${a}.`;
  return high < 0
    ? `${b} earns less than ${a}.`
    : `These tasks do not show which of ${a} and ${b} earns more.`;
}

function passText({ passAt, passReward }: LaunchReport): string {
  if (passAt.length === 0) return "";
  const parts = passAt.map(({ k, value }) => `pass@${k} ${figure(value)}`);
  return `, ${parts.join(", ")} (a rollout passes with a reward of ${figure(passReward)} or more)`;
}

function intervalText({ mean, low, high, level, tasks, corrected }: MeanInterval): string {
  if (low === null || high === null)
    return `${rounded(mean)} over ${plural(tasks, "task")}: too few tasks for an interval`;
  const note = corrected ? ", made wider for rare rewards that these tasks may not show" : "";
  return `${rounded(mean)}, ${Math.round(level * 100)} % interval ${rounded(low)} to ${rounded(high)} over ${plural(tasks, "task")} (Student-t${note})`;
}

/** More digits than an interval of a few tasks supports would mislead. */
function rounded(value: number): string {
  return String(Number(value.toPrecision(4)));
}

function taskTable({ tasks }: LaunchReport): string {
  // If everything failed, the table of failures says all there is.
  if (tasks.length < 2 || tasks.every(({ failed, rollouts }) => failed === rollouts)) return "";
  const shown = tasks.slice(0, SHOWN);
  const lines = table(shown, [
    { title: "TASK", cell: ({ task, taskTitle }) => taskName(task, taskTitle) },
    { title: "ROLLOUTS", align: "right", cell: ({ rollouts }) => thousands(rollouts) },
    { title: "PASSED", align: "right", cell: ({ passed, judged }) => `${passed}/${judged}` },
    { title: "MEAN REWARD", align: "right", cell: ({ meanReward }) => figureOr(meanReward) },
    { title: "FAILED", align: "right", cell: ({ failed }) => thousands(failed) },
  ]);
  const rest = tasks.length - shown.length;
  return `\n${lines}${rest === 0 ? "" : `and ${plural(rest, "more task")}: --json lists all\n`}`;
}

/** Table of the failures by reason; empty if there is none. */
export function renderFailures({ failures }: Pick<LaunchReport, "failures">): string {
  if (failures.length === 0) return "";
  const rest = failures.length - SHOWN;
  return `\n${table(failures.slice(0, SHOWN), [
    { title: "FAILURES", align: "right", cell: ({ count }) => thousands(count) },
    { title: "OWNER", cell: ({ owner }) => owner },
    { title: "FIRST MESSAGE", cell: ({ message }) => message.split("\n")[0]!.slice(0, MAX_MESSAGE) },
  ])}${rest > 0 ? `and ${plural(rest, "reason")} more: --json lists all\n` : ""}`;
}

function taskName(task: string, title: string | null): string {
  return title === null ? task : `${task} ${title.slice(0, 40)}`;
}

function failuresOf({ tasks }: LaunchReport): number {
  return tasks.reduce((sum, { failed }) => sum + failed, 0);
}

function figureOr(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : figure(value);
}

export function failedText({ failed, blamed }: Pick<Progress, "failed" | "blamed">): string[] {
  const owners = Object.entries(failed);
  if (owners.length === 0) return [];
  const sum = owners.reduce((total, [, count]) => total + count, 0);
  const word =
    blamed === 0 ? "" : `${blamed === sum ? "," : `; ${blamed} of them`} as the agent itself reports`;
  return [`failed ${sum} (${owners.map(([owner, count]) => `${owner} ${count}`).join(", ")}${word})`];
}

function duration(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 90) return `${seconds} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
