/** Numbers and times as the page writes them. */
export function figure(value: number): string {
  return String(Number(value.toPrecision(6)));
}

export function thousands(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, " ");
}

export function timeText(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace("T", " ");
}

export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(2)} s` : `${(ms / 60_000).toFixed(1)} min`;
}

export function short(digest: string): string {
  return digest.replace(/^sha256:/, "").slice(0, 12);
}

/** What a call or a rollout used; what is not known is left out. */
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
