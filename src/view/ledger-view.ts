/** What was admitted from a book and what was not, in one line. */
import type { AdmittedRollouts } from "../book/rollouts/index.ts";

/** Reasons that are about a stream, not about the whole rollout. */
const OF_STREAMS: ReadonlySet<string> = new Set([
  ...["unlabelled", "no-propensity", "no-group", "too-long", "held-out", "other-logprob-kind"],
  "other-tokenizer",
]);

/** Reasons that only say that a stream is somebody else's are left out. */
export function renderAdmitted({ ledger, rows, freshness, family, level }: AdmittedRollouts): string {
  const reasons = ledger
    .reasons()
    .filter(({ reason }) => reason !== "other-family" && reason !== "other-level")
    .map(({ reason, artifacts, streams }) => `${reason} ${OF_STREAMS.has(reason) ? streams : artifacts}`);
  const limit =
    freshness === "none"
      ? ""
      : `, freshness ${freshness.drift?.accept ?? "-"}/${freshness.drift?.quarantine ?? "-"}`;
  const left = reasons.length === 0 ? "" : `; excluded: ${reasons.join(", ")}`;
  const admitted = new Set(rows.map(({ content }) => content)).size;
  return `${family} (${level}s): ${admitted} of ${ledger.considered.artifacts} rollouts admitted${limit}${left}\n`;
}

export function admittedJson({ ledger, rows, freshness, manifest, family, level }: AdmittedRollouts): object {
  return {
    ...{ family, level, freshness, manifest: manifest.digest },
    ...{ considered: ledger.considered.artifacts, admitted: rows.length, excluded: ledger.reasons() },
  };
}
