/** What was erased from a book, by whom and why. It stays where the erased bytes were: a reader that meets a reference to them
 *  learns that they are gone on purpose. Holds digests and kinds, nothing of the content. */
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
    /** Records that must not come back: contents, envelopes, events, feedback, batch shards. */
    records: z.array(erasedBlob).min(1).max(MANY),
    /** What only these records needed. The same bytes may enter the book again with another rollout. */
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
