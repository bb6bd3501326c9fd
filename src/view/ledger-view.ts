/** What was admitted from a book and what was not, in one line. */
import type { AdmittedRollouts } from "../book/rollouts/index.ts";

/** Every rollout counts once: those that are admitted and those that are excluded add up to all. */
export function renderAdmitted({ ledger, rows, freshness, family, level }: AdmittedRollouts): string {
  const lost = ledger.lostRollouts();
  const excluded = lost.reduce((sum, { rollouts }) => sum + rollouts, 0);
  const limit =
    freshness === "none"
      ? ""
      : `, freshness ${freshness.drift?.accept ?? "-"}/${freshness.drift?.quarantine ?? "-"}`;
  const reasons = lost.map(({ reason, rollouts }) => `${reason} ${rollouts}`).join(", ");
  const left = excluded === 0 ? "" : `; ${excluded} excluded: ${reasons}`;
  return `${family} (${level}s): ${admittedCount(rows)} of ${ledger.considered.artifacts} rollouts admitted${limit}${left}\n`;
}

export function admittedJson({ ledger, rows, freshness, manifest, family, level }: AdmittedRollouts): object {
  return {
    ...{ family, level, freshness, manifest: manifest.digest },
    ...{ considered: ledger.considered.artifacts, admitted: admittedCount(rows), streams: rows.length },
    ...{ lost: ledger.lostRollouts(), excluded: ledger.reasons() },
  };
}

function admittedCount(rows: AdmittedRollouts["rows"]): number {
  return new Set(rows.map(({ content }) => content)).size;
}
