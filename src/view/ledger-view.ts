/** Renders one line about the used and the excluded rollouts of a book. */
import type { Digest } from "../base/index.ts";
import type { AdmittedRollouts } from "../book/rollouts/index.ts";
import { thousands } from "./format.ts";

/** `admitted`: some of them may not be in the file. A set holds the contents of the rollouts in the file. */
type Use = "used" | "admitted" | ReadonlySet<Digest>;

/** Renders a line for each family and level. If there are several, a rollout of another family is not an exclusion: it
 *  counts in its own line. */
export function renderEveryAdmitted(admitted: readonly AdmittedRollouts[], use: Use = "used"): string {
  return admitted.map((each) => admittedLine(each, { ownOnly: admitted.length > 1, use })).join("");
}

/** Counts the rollouts that one learner or judge uses. Rollouts without a reward are read, but neither teach nor judge. */
export function renderAdmitted({ rows, ...admitted }: AdmittedRollouts): string {
  const labelled = rows.filter(({ reward }) => reward !== null);
  const unlabelled = admittedCount(rows) - admittedCount(labelled);
  return admittedLine({ ...admitted, rows: labelled }, { ownOnly: false, unlabelled });
}

/** Every rollout counts once: the used and the excluded ones add up to all. */
function admittedLine(
  { ledger, rows, freshness, family, level }: AdmittedRollouts,
  {
    ownOnly,
    unlabelled = 0,
    use = "used",
  }: {
    readonly ownOnly: boolean;
    readonly unlabelled?: number;
    readonly use?: Use;
  },
): string {
  const lost = [
    ...ledger.lostRollouts(),
    ...(unlabelled > 0 ? [{ reason: "unlabelled", rollouts: unlabelled }] : []),
  ].filter(({ reason }) => !ownOnly || (reason !== "other-family" && reason !== "other-level"));
  const excluded = lost.reduce((sum, { rollouts }) => sum + rollouts, 0);
  const admitted = admittedCount(rows);
  const limit =
    freshness === "none"
      ? ""
      : `, freshness ${freshness.drift?.accept ?? "-"}/${freshness.drift?.quarantine ?? "-"}`;
  const reasons = lost.map(({ reason, rollouts }) => `${reason} ${rollouts}${meaningOf(reason)}`).join(", ");
  const left = excluded === 0 ? "" : `; ${thousands(excluded)} excluded: ${reasons}`;
  const used =
    typeof use === "string"
      ? use
      : `admitted, ${thousands(admittedCount(rows.filter(({ content }) => use.has(content))))} written`;
  return `${family} (${level}s): ${thousands(admitted)} of ${thousands(admitted + excluded)} rollouts ${used}${limit}${left}\n`;
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

function meaningOf(reason: string): string {
  return reason === "not-accepted" ? " (attempts that another attempt replaced)" : "";
}
