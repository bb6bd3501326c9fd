/** The records of revisions that are known by what they did alone: routers, models and agents as they were logged.
 *  In: a stream's family and revision. Out: a PolicyRevision. The same revision gives the same bytes, whoever logs it and
 *  however often, so a book keeps it once. Does not say when it was made, nor from what: whoever knows more seals more. */
import { PolicyRevision, type RevisionKey } from "../contract/policy-revision.ts";
import { type Sealed, seal } from "../contract/record.ts";
import type { Stream } from "../contract/stream.ts";

export function loggedRevision(
  family: Stream["family"],
  { id, digest }: RevisionKey,
): Sealed<PolicyRevision> {
  return seal(PolicyRevision, { family, id, digest, producedAtMs: 0 });
}

/** One for each revision of the streams that `known` has not heard of; it has afterwards. */
export function newRevisions(streams: readonly Stream[], known: Set<string>): Sealed<PolicyRevision>[] {
  return streams.flatMap((stream) =>
    (stream.level === "token" ? stream.segments : stream.steps).flatMap(({ revision }) => {
      const key = `${stream.family}/${revision.id}/${revision.digest}`;
      if (known.has(key)) return [];
      known.add(key);
      return [loggedRevision(stream.family, revision)];
    }),
  );
}
