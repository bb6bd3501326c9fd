/** How a launch looks: one line while it runs, a few when it is over. In: progress. Out: text. */
import type { Progress } from "../collect/rollout/index.ts";
import { figure, plural, thousands } from "./format.ts";

/** `done 12/64  failed 2 (agent 1, provider 1)  1 234 tokens  $0.01  3.2/s  16 s left` */
export function renderProgress(progress: Progress): string {
  const { done, total, tokens, costUsd, perSecond, etaMs, dead } = progress;
  return [
    `done ${done}/${total}`,
    ...failedText(progress),
    ...(dead > 0 ? [`${dead} set aside`] : []),
    ...(tokens > 0 ? [`${thousands(tokens)} tokens`] : []),
    ...(costUsd > 0 ? [`$${figure(costUsd)}`] : []),
    `${perSecond.toFixed(1)}/s`,
    etaMs === null ? "…" : `${duration(etaMs)} left`,
  ].join("  ");
}

export function renderSummary(progress: Progress): string {
  const { done, total, earlier, tokens, costUsd, meanReward, truncated, dead } = progress;
  const parts = [
    `${thousands(done)} of ${plural(total, "rollout")} sealed`,
    ...(earlier > 0 ? [`${thousands(earlier)} of them earlier`] : []),
    ...(truncated > 0 ? [`${truncated} truncated`] : []),
    ...failedText(progress),
    ...(dead > 0 ? [`${dead} set aside`] : []),
    ...(meanReward === null ? ["no rewards"] : [`mean reward ${figure(meanReward)}`]),
    ...(tokens > 0 ? [`${thousands(tokens)} tokens`] : []),
    ...(costUsd > 0 ? [`$${figure(costUsd)}`] : []),
  ];
  return `${parts.join(", ")}\n`;
}

/** Undefined where nothing failed. */
export function renderCommonFailure({ commonFailure }: Progress): string | undefined {
  if (commonFailure === null) return undefined;
  const [line = ""] = commonFailure.reason.split("\n");
  return `most common failure (${plural(commonFailure.count, "rollout")}): ${line.slice(0, 500)}`;
}

function failedText({ failed, blamed }: Progress): string[] {
  const owners = Object.entries(failed);
  if (owners.length === 0) return [];
  const sum = owners.reduce((total, [, count]) => total + count, 0);
  const word = blamed > 0 ? `; ${blamed} by the agent's word` : "";
  return [`failed ${sum} (${owners.map(([owner, count]) => `${owner} ${count}`).join(", ")}${word})`];
}

function duration(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 90) return `${seconds} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
