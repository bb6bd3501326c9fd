/** Collects the records that a rollout refers to, in the exchange form: another book accepts a rollout only with
 *  them.
 *  In: a book. Out: task, assignment, environment and policy revisions of a rollout, each after the records it
 *  refers to. Leaves out records that are no longer in the book. Also leaves out revisions that were trained on
 *  batches, because batches do not travel with a trace. */
import type { Digest, Json } from "../../base/index.ts";
import { openRecord, PolicyRevision, type ReadBlob, type RolloutContent } from "../../contract/index.ts";
import type { BookIndex } from "../open/index.ts";

/** Digests of the records of a revision, looked up by family and id. */
export type RevisionsNamed = (family: string, id: string) => readonly Digest[];

export function revisionsNamed(index: BookIndex): RevisionsNamed {
  const named = new Map<string, Digest[]>();
  for (const { family, id, digest } of index.ofKind(PolicyRevision.kind))
    named.set(`${family}/${id}`, [...(named.get(`${family}/${id}`) ?? []), digest]);
  return (family, id) => named.get(`${family}/${id}`) ?? [];
}

export async function referredRecords(
  { read, revisions }: { read: ReadBlob; revisions: RevisionsNamed },
  { environmentDigest, task, assignment, streams }: RolloutContent,
): Promise<Json[]> {
  const found: Json[] = [];
  for (const digest of [environmentDigest, task.digest, assignment?.digest]) {
    const blob = digest === undefined ? undefined : await read(digest);
    if (blob !== undefined) found.push(wireOf(blob.bytes));
  }
  const named = streams.flatMap((stream) =>
    (stream.level === "token" ? stream.segments : stream.steps).flatMap(({ revision }) =>
      revisions(stream.family, revision.id),
    ),
  );
  for (const digest of new Set(named)) {
    const blob = await read(digest);
    if (blob !== undefined && !isTrained(openRecord(PolicyRevision, blob.bytes, digest)))
      found.push(wireOf(blob.bytes));
  }
  return found;
}

function isTrained({ training }: PolicyRevision): boolean {
  return (training?.batches.length ?? 0) > 0;
}

/** Sealed bytes are the canonical text of the exchange form. */
function wireOf(bytes: Uint8Array): Json {
  return JSON.parse(Buffer.from(bytes).toString("utf8")) as Json;
}
