/** A validator's judgement of one rollout, and the release of a quarantined rollout. Verdicts gate batches. */
import * as z from "zod";
import { defineRecord, digest, id, json, type RecordOf, refuse, text, timeMs } from "../codec/index.ts";

export const FULL_WEIGHT_BPS = 10_000;

const disposition = z.enum([
  "accepted",
  "normalized",
  "quarantined",
  "replay-required",
  "rejected",
  "unobserved",
]);
export type Disposition = z.output<typeof disposition>;

const verdictCode = z.enum([
  "execution-proof-missing",
  "stale-policy-rejected",
  "replayed-artifact-detected",
  "timer-integrity-mismatch",
  "token-accounting-mismatch",
  "final-state-mismatch",
  "execution-strategy-mismatch",
  "duplicate-detected",
  "contribution-normalized",
]);

export const Verdict = defineRecord({
  kind: "rollbook.verdict.v1",
  summary: "A validator's disposition of one rollout, with weight, codes and what it observed.",
  shape: {
    subject: digest,
    validator: id,
    /** Policy family of the verdict. Absent: every family that learns from the rollout. */
    family: z.optional(id),
    disposition,
    weightBps: z.number().int().min(0).max(FULL_WEIGHT_BPS),
    codes: z.array(verdictCode).max(32),
    observations: z.array(z.strictObject({ name: id, observed: json, expected: z.optional(json) })).max(1024),
    atMs: timeMs,
  },
  references: (verdict) => [
    { digest: verdict.subject, kind: "rollbook.rollout-content.v1", field: "subject" },
  ],
  check(verdict) {
    const bad = (message: string) =>
      refuse("bad-record", { field: "disposition", disposition: verdict.disposition }, message);
    // A rollout that no validator examined is "unobserved" and cannot be accepted.
    if (verdict.disposition === "accepted" && verdict.observations.length === 0)
      throw bad("an acceptance without observations: use unobserved.");
    if (verdict.codes.includes("duplicate-detected") && verdict.disposition === "accepted")
      throw bad("a duplicate is normalized or rejected, not accepted.");
    if (verdict.disposition === "normalized" && verdict.weightBps === FULL_WEIGHT_BPS)
      throw bad("normalized needs a weight below 10000 basis points.");
    if (verdict.disposition === "accepted" && verdict.weightBps !== FULL_WEIGHT_BPS)
      throw bad("accepted has the full weight of 10000 basis points.");
  },
});
export type Verdict = RecordOf<typeof Verdict>;

export const QuarantineRelease = defineRecord({
  kind: "rollbook.release.v1",
  summary: "Lets a quarantined rollout into batches, by name and with a reason.",
  shape: { subject: digest, verdict: digest, by: id, reason: text(), atMs: timeMs },
  references: (release) => [
    { digest: release.subject, kind: "rollbook.rollout-content.v1", field: "subject" },
    { digest: release.verdict, kind: "rollbook.verdict.v1", field: "verdict" },
  ],
});
export type QuarantineRelease = RecordOf<typeof QuarantineRelease>;
