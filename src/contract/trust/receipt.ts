/** The answer to a submission: the decision and its measurements. A refusal is an answer, not an error. */
import * as z from "zod";
import { defineRecord, digest, finite, id, type RecordOf, text, timeMs } from "../codec/index.ts";

/** `stored`: kept, freshness not judged. `unknown`: judged, but freshness could not be measured. */
const receiptOutcome = z.enum([
  "stored",
  "accepted-exact",
  "accepted-off-policy",
  "quarantined",
  "discarded",
  "duplicate",
  "expired",
  "oversize",
  "unknown",
]);
export type ReceiptOutcome = z.output<typeof receiptOutcome>;

/** One measurement against its budgets. A null observation means "could not be measured". */
const signal = z.strictObject({
  name: id,
  observed: z.nullable(finite),
  acceptBudget: z.nullable(finite),
  quarantineBudget: z.nullable(finite),
  outcome: receiptOutcome,
});

export const Receipt = defineRecord({
  kind: "rollbook.receipt.v1",
  summary: "The outcome of submitting one artifact: accepted, quarantined, discarded, and why.",
  shape: {
    subject: digest,
    claim: z.optional(id),
    worker: z.optional(id),
    outcome: receiptOutcome,
    signals: z.array(signal).max(64),
    message: text(),
    atMs: timeMs,
  },
  references: (receipt) => [
    { digest: receipt.subject, kind: "", field: "subject", external: true, what: "rollout" },
  ],
});
export type Receipt = RecordOf<typeof Receipt>;
