/** What verdicts, releases and endings decide about a rollout, before any stream is looked at. Pure. */
import type { Digest } from "../../base/digest.ts";
import { outsideBaseline } from "../../contract/ending.ts";
import type { ExclusionReason } from "../../contract/ledger.ts";
import type { Sealed } from "../../contract/record.ts";
import type { RolloutContent } from "../../contract/rollout.ts";
import { type Disposition, FULL_WEIGHT_BPS, type Release, type Verdict } from "../../contract/verdict.ts";

export type Gate = { open: true; weightBps: number } | { open: false; reason: ExclusionReason };

/** From the kindest to the harshest: where validators differ, the harshest stands. */
const SEVERITY: readonly Disposition[] = [
  "accepted",
  "normalized",
  "unobserved",
  "quarantined",
  "replay-required",
  "rejected",
];

export interface Gates {
  /** By content digest: what the verdicts say of a rollout. */
  verdictGate(content: Digest): Gate;
  /** By ending and by the fate of the task. */
  endingGate(content: RolloutContent): ExclusionReason | undefined;
}

export function makeGates(options: {
  verdicts: readonly Sealed<Verdict>[];
  releases: readonly Release[];
  requireVerdict: boolean;
  failedTasks: ReadonlySet<string>;
}): Gates {
  const released = new Set(options.releases.map((release) => `${release.subject} ${release.verdict}`));
  const bySubject = latestPerValidator(options.verdicts);
  return {
    verdictGate(content) {
      const verdicts = bySubject.get(content);
      if (verdicts === undefined)
        return options.requireVerdict
          ? { open: false, reason: "no-verdict" }
          : { open: true, weightBps: FULL_WEIGHT_BPS };
      const standing = verdicts.filter(
        ({ digest, record }) => record.disposition !== "quarantined" || !released.has(`${content} ${digest}`),
      );
      const worst = Math.max(0, ...standing.map(({ record }) => SEVERITY.indexOf(record.disposition)));
      const disposition = SEVERITY[worst]!;
      if (disposition === "rejected") return { open: false, reason: rejectedFor(standing) };
      if (disposition !== "accepted" && disposition !== "normalized")
        return { open: false, reason: disposition };
      const weightBps = Math.min(FULL_WEIGHT_BPS, ...standing.map(({ record }) => record.weightBps));
      return weightBps === 0 ? { open: false, reason: "zero-weight" } : { open: true, weightBps };
    },
    endingGate(content) {
      return (
        outsideBaseline(content.ending) ??
        (options.failedTasks.has(taskKey(content)) ? "task-quarantined" : undefined)
      );
    },
  };
}

/** Coming too late is no fault of the rollout, so it is told apart, unless something else is wrong too. */
function rejectedFor(verdicts: readonly Sealed<Verdict>[]): "stale" | "rejected" {
  const codes = verdicts
    .filter(({ record }) => record.disposition === "rejected")
    .map(({ record }) => record.codes.join());
  return codes.every((code) => code === "stale-policy-rejected") ? "stale" : "rejected";
}

/** A task is its id and its digest: a mended task under the old id is not quarantined with it. */
export function taskKey(content: Pick<RolloutContent, "environment" | "task">): string {
  return JSON.stringify([content.environment, content.task.id, content.task.digest ?? null]);
}

function latestPerValidator(verdicts: readonly Sealed<Verdict>[]): Map<Digest, Sealed<Verdict>[]> {
  const latest = new Map<Digest, Map<string, Sealed<Verdict>>>();
  const ordered = [...verdicts].sort(
    (a, b) => a.record.atMs - b.record.atMs || (a.digest < b.digest ? -1 : 1),
  );
  for (const verdict of ordered) {
    const { subject, validator } = verdict.record;
    let mine = latest.get(subject);
    if (mine === undefined) {
      mine = new Map();
      latest.set(subject, mine);
    }
    mine.set(validator, verdict);
  }
  return new Map([...latest].map(([subject, byValidator]) => [subject, [...byValidator.values()]]));
}
