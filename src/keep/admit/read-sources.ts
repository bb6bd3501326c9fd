/** Typed reads for assembly: every record arrives checked, every absence is named. Holds no state but small caches. */
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
import { readRecord } from "../../store/index.ts";

export async function readSealed<T extends RecordType>(
  read: ReadBlob,
  type: T,
  digest: Digest,
): Promise<Sealed<RecordOf<T>>> {
  const record = await readRecord(read, type, digest);
  return { kind: type.kind, digest, bytes: new Uint8Array(0), record };
}

/** Contents, each checked against its assignment. Assignments are few and shared by a group, so they are kept. */
export function contentReader(read: ReadBlob): (digest: Digest) => Promise<RolloutContent> {
  const assignments = new Map<Digest, Assignment>();
  return async (digest) => {
    const content = await readRecord(read, RolloutContent, digest);
    if (content.assignment !== undefined) {
      const key = content.assignment.digest;
      const assignment = assignments.get(key) ?? (await readRecord(read, Assignment, key));
      assignments.set(key, assignment);
      checkBinding(content, assignment, key);
    }
    return content;
  };
}

/** By time; digests settle ties, whatever came first. */
export function inOrder<T extends { atMs: number }>(records: readonly Sealed<T>[]): Sealed<T>[] {
  return [...records].sort((a, b) => a.record.atMs - b.record.atMs || (a.digest < b.digest ? -1 : 1));
}
