/** Typed reads for assembly: every record arrives checked, every absence is named. Holds no state but small caches. */
import type { Digest } from "../../base/digest.ts";
import type { RecordOf, RecordType, Sealed } from "../../contract/codec/record.ts";
import { Assignment, checkBinding } from "../../contract/rollout/assignment.ts";
import { RolloutContent } from "../../contract/rollout/rollout.ts";
import type { ReadBlob } from "../../contract/rollout/rollout-exchange.ts";
import { readRecord as readFrom } from "../../store/blob/read-record.ts";

export function readRecord<T extends RecordType>(
  read: ReadBlob,
  type: T,
  digest: Digest,
): Promise<RecordOf<T>> {
  return readFrom({ get: read }, type, digest);
}

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
