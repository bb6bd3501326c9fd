/** Typed reads for assembly: every record is checked, and every missing record is named in an error. Holds only small
 *  caches. */
import type { Digest } from "../../base/index.ts";
import {
  Assignment,
  checkBinding,
  type ReadBlob,
  type RecordOf,
  type RecordType,
  RolloutContent,
  type Sealed,
} from "../../contract/index.ts";
import { type ReadRecord, readRecord } from "../../store/index.ts";

export async function readSealed<T extends RecordType>(
  read: ReadBlob,
  type: T,
  digest: Digest,
): Promise<Sealed<RecordOf<T>>> {
  const record = await readRecord(read, type, digest);
  return { kind: type.kind, digest, bytes: new Uint8Array(0), record };
}

export type ReadContent = (digest: Digest) => Promise<RolloutContent>;

/** Readers with a cache, for callers that read a record more than once. */
export interface SourceReaders {
  readonly readRecord: ReadRecord;
  readonly readContent: ReadContent;
  readonly readColumns: ReadBlob;
}

export function sourceReaders(read: ReadBlob, readRecord = recordReader(read)): SourceReaders {
  return { readRecord, readContent: contentReader(readRecord), readColumns: columnReader(read) };
}

export function recordReader(read: ReadBlob): ReadRecord {
  return (type, digest) => readRecord(read, type, digest);
}

/** Number of content parts that a reader caches, some megabytes. */
const KEPT_PARTS = 20_000;

/** Reads contents, each checked against its assignment. Assignments are few and shared by a group, so they are cached.
 *  The first contents that fit are cached too, because a batch is cut in two passes. */
export function contentReader(readRecord: ReadRecord): ReadContent {
  const assignments = new Map<Digest, Assignment>();
  const kept = new Map<Digest, RolloutContent>();
  let room = KEPT_PARTS;
  return async (digest) => {
    const known = kept.get(digest);
    if (known !== undefined) return known;
    const content = await readRecord(RolloutContent, digest);
    if (content.assignment !== undefined) {
      const key = content.assignment.digest;
      const assignment = assignments.get(key) ?? (await readRecord(Assignment, key));
      assignments.set(key, assignment);
      checkBinding(content, assignment, key);
    }
    const parts = partsOf(content);
    if (parts <= room) {
      kept.set(digest, content);
      room -= parts;
    }
    return content;
  };
}

/** Bytes of columns that a reader caches. */
const KEPT_BYTES = 8 * 1024 * 1024;

/** Reads column blobs and caches the first that fit. Masks, turns and rewards of short answers are few, and each is in
 *  the book once. */
function columnReader(read: ReadBlob): ReadBlob {
  const kept = new Map<Digest, ReturnType<ReadBlob>>();
  let room = KEPT_BYTES;
  const readNew: ReadBlob = async (digest) => {
    const blob = await read(digest);
    if (blob !== undefined && blob.bytes.length <= room) {
      kept.set(digest, Promise.resolve(blob));
      room -= blob.bytes.length;
    }
    return blob;
  };
  return (digest) => kept.get(digest) ?? readNew(digest);
}

/** Size of a content, as its number of parts. */
function partsOf({ calls, streams }: RolloutContent): number {
  let parts = calls.length;
  for (const stream of streams)
    if (stream.level === "token") parts += stream.segments.length;
    else for (const { candidates } of stream.steps) parts += candidates.length;
  return parts;
}

/** Sorted by time; digests break ties, so the order of arrival has no effect. */
export function inOrder<T extends { readonly digest: Digest; readonly record: { readonly atMs: number } }>(
  records: readonly T[],
): T[] {
  return [...records].sort((a, b) => a.record.atMs - b.record.atMs || (a.digest < b.digest ? -1 : 1));
}
