/** Record of an erasure: the erased blobs, the person and the reason. The tombstone takes the place of the erased
 *  bytes: a reader that finds a reference to them learns that they were erased on purpose. Holds digests and kinds, no
 *  content. */
import * as z from "zod";
import type { Digest } from "../../base/index.ts";
import { defineRecord, digest, id, type RecordOf, refuse, text, timeMs } from "../codec/index.ts";

const MANY = 10_000_000;

const erasedBlob = z.strictObject({ digest, kind: text(128) });
export type ErasedBlob = z.output<typeof erasedBlob>;

export const Tombstone = defineRecord({
  kind: "rollbook.tombstone.v1",
  summary: "Erased rollouts: the digests of everything that was removed with them, by whom and why.",
  shape: {
    subjects: z
      .array(z.strictObject({ rollout: id, content: digest }))
      .min(1)
      .max(MANY),
    /** Records that must not be stored again: contents, envelopes, events, feedback, batch shards. */
    records: z.array(erasedBlob).min(1).max(MANY),
    /** Blobs that only these records needed. Another rollout may store the same bytes again. */
    blobs: z.array(erasedBlob).max(MANY),
    reason: text(),
    by: id,
    atMs: timeMs,
  },
  check({ subjects, records, blobs }) {
    requireSorted(
      "subjects",
      subjects.map(({ content }) => content),
    );
    requireSorted(
      "records",
      records.map((each) => each.digest),
    );
    requireSorted(
      "blobs",
      blobs.map((each) => each.digest),
    );
    const listed = new Set(records.map((each) => each.digest));
    for (const { content } of subjects)
      if (!listed.has(content))
        throw refuse("bad-record", { field: "subjects", content }, `${content} is not among the records.`);
  },
});
export type Tombstone = RecordOf<typeof Tombstone>;

function requireSorted(field: string, digests: readonly Digest[]): void {
  for (let i = 1; i < digests.length; i++)
    if (digests[i - 1]! >= digests[i]!)
      throw refuse(
        "bad-record",
        { field: `${field}[${i}]` },
        `${field} are not sorted by digest and unique.`,
      );
}
