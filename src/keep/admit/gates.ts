/** Gates of a rollout by receipts, verdicts, releases and endings, before its streams are examined. Pure. */
import type { Digest } from "../../base/index.ts";
import { isTaken, itemOf } from "../../collect/index.ts";
import {
  type Disposition,
  type ExclusionReason,
  FULL_WEIGHT_BPS,
  outsideBaseline,
  type QuarantineRelease,
  type Receipt,
  type RolloutContent,
  rolloutIdFor,
  type Sealed,
  type Verdict,
} from "../../contract/index.ts";
import { FRESHNESS_VALIDATOR } from "./freshness-verdict.ts";
import { inOrder } from "./read-sources.ts";

type Gate = { open: true; weightBps: number } | { open: false; reason: ExclusionReason };

/** From the mildest to the most severe: if validators differ, the most severe disposition applies. */
const SEVERITY: readonly Disposition[] = [
  "accepted",
  "normalized",
  "unobserved",
  "quarantined",
  "replay-required",
  "rejected",
];

export interface Gates {
  /** Refuses an artifact that is not the result of its assignment according to the receipts. */
  receiptGate(digest: Digest, content: RolloutContent): ExclusionReason | undefined;
  /** Combined verdicts on a rollout, by content digest. */
  verdictGate(content: Digest): Gate;
  /** True if the rollout was released from a freshness quarantine; no budget overrides the release. */
  isReleased(content: Digest): boolean;
  /** Refuses a rollout by its ending, or because its task failed. */
  endingGate(content: RolloutContent): ExclusionReason | undefined;
}

export function makeGates(options: {
  verdicts: readonly Sealed<Verdict>[];
  releases: readonly QuarantineRelease[];
  receipts: readonly Sealed<Receipt>[];
  /** Family of the batch: verdicts about other families do not count. */
  family: string;
  requireVerdict: boolean;
  failedTasks: ReadonlySet<string>;
}): Gates {
  const released = new Set(options.releases.map((release) => `${release.subject} ${release.verdict}`));
  const about = options.verdicts.filter(
    ({ record: { family } }) => (family ?? options.family) === options.family,
  );
  const bySubject = latestPerValidator(about);
  const { received, results } = readReceipts(options.receipts);
  return {
    receiptGate(digest, { assignment }) {
      if (assignment === undefined) return undefined;
      const result = results.get(rolloutIdFor(assignment.digest, assignment.sample));
      const stands = result === undefined ? !received.has(digest) : result === digest;
      return stands ? undefined : "not-accepted";
    },
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
    isReleased: (content) =>
      (bySubject.get(content) ?? []).some(
        ({ digest, record }) =>
          record.validator === FRESHNESS_VALIDATOR && released.has(`${content} ${digest}`),
      ),
    endingGate(content) {
      return (
        outsideBaseline(content.ending) ??
        (options.failedTasks.size > 0 && options.failedTasks.has(taskKey(content))
          ? "task-quarantined"
          : undefined)
      );
    },
  };
}

/** `results`: by item, the content that the first accepting receipt names; a second artifact of the item does not
 *  count. `received`: all contents with a receipt, accepting or not. */
function readReceipts(receipts: readonly Sealed<Receipt>[]): {
  received: Set<Digest>;
  results: Map<string, Digest>;
} {
  const [received, results] = [new Set<Digest>(), new Map<string, Digest>()];
  for (const { record } of inOrder(receipts)) {
    const item = record.claim === undefined ? undefined : itemOf(record.claim);
    if (item === undefined) continue;
    received.add(record.subject);
    if (isTaken(record.outcome) && !results.has(item)) results.set(item, record.subject);
  }
  return { received, results };
}

/** A late rollout is not faulty. It is reported as stale, unless another fault exists. */
function rejectedFor(verdicts: readonly Sealed<Verdict>[]): "stale" | "rejected" {
  const codes = verdicts
    .filter(({ record }) => record.disposition === "rejected")
    .map(({ record }) => record.codes.join());
  return codes.every((code) => code === "stale-policy-rejected") ? "stale" : "rejected";
}

/** Key of a task: its id and its digest. A corrected task under the old id is not quarantined with the old one. */
export function taskKey(content: Pick<RolloutContent, "environment" | "task">): string {
  return JSON.stringify([content.environment, content.task.id, content.task.digest ?? null]);
}

function latestPerValidator(verdicts: readonly Sealed<Verdict>[]): Map<Digest, Sealed<Verdict>[]> {
  const latest = new Map<Digest, Map<string, Sealed<Verdict>>>();
  for (const verdict of inOrder(verdicts)) {
    const { subject, validator, family } = verdict.record;
    const mine = latest.get(subject) ?? new Map<string, Sealed<Verdict>>();
    latest.set(subject, mine.set(`${validator} ${family ?? ""}`, verdict));
  }
  return new Map([...latest].map(([subject, byValidator]) => [subject, [...byValidator.values()]]));
}
