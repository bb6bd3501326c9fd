/** Numbers and times in the format of the page. */
import { figure, thousands } from "../../src/base/words.ts";

export { figure, short, thousands } from "../../src/base/words.ts";

/** `2026-01-31 12:00:00`, in UTC; an imported decision without a time has 0. */
export function timeText(atMs: number): string {
  return atMs === 0 ? "–" : new Date(atMs).toISOString().slice(0, 19).replace("T", " ");
}

/** Start and duration of a rollout. */
export function spanText({ startedAtMs, endedAtMs }: { startedAtMs: number; endedAtMs: number }): string {
  if (startedAtMs === 0) return "no time recorded";
  return `${timeText(startedAtMs)} UTC, took ${durationText(endedAtMs - startedAtMs)}`;
}

export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(2)} s` : `${(ms / 60_000).toFixed(1)} min`;
}

/** Tokens and cost of a call or a rollout; unknown values are left out. */
export function costs(of: {
  promptTokens?: number | null | undefined;
  completionTokens?: number | null | undefined;
  costUsd?: number | null | undefined;
  durationMs?: number | null | undefined;
}): string[] {
  const { promptTokens, completionTokens, costUsd, durationMs } = of;
  return [
    ...(promptTokens == null
      ? []
      : [`${thousands(promptTokens)} + ${thousands(completionTokens ?? 0)} tokens`]),
    ...(costUsd == null ? [] : [`$${figure(costUsd)}`]),
    ...(durationMs == null ? [] : [durationText(durationMs)]),
  ];
}
