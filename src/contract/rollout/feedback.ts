/** An outcome that arrives after the rollout was sealed. Feedback adds a record and never edits one. */
import * as z from "zod";
import { count, defineRecord, digest, finite, id, type RecordOf, text, timeMs } from "../codec/index.ts";

export const Feedback = defineRecord({
  kind: "rollbook.feedback.v1",
  summary: "A late outcome for a rollout or one of its calls, idempotent by key.",
  shape: {
    /** Content digest of the rollout. */
    subject: digest,
    call: z.optional(count),
    name: id,
    value: finite,
    source: text(512),
    idempotencyKey: text(256),
    atMs: timeMs,
  },
  references: (feedback) => [
    { digest: feedback.subject, kind: "rollbook.rollout-content.v1", field: "subject" },
  ],
});
export type Feedback = RecordOf<typeof Feedback>;
