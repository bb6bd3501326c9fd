/** The records of revisions that are known by what they did alone: routers, models and agents as they were logged.
 *  In: a stream's family and revision. Out: a PolicyRevision. The same revision gives the same bytes, whichever process logs it and
 *  however often, so a book keeps it once. Does not say when it was made, nor from what: a process that knows more seals another record. */

import { nameRevision, type PolicyRevision, type Sealed, type Stream } from "../contract/index.ts";

/** One for each revision of the streams that `known` has not heard of; it has afterwards. */
export function newRevisions(streams: readonly Stream[], known: Set<string>): Sealed<PolicyRevision>[] {
  return streams.flatMap((stream) =>
    (stream.level === "token" ? stream.segments : stream.steps).flatMap(({ revision }) => {
      const key = `${stream.family}/${revision.id}/${revision.digest}`;
      if (known.has(key)) return [];
      known.add(key);
      return [nameRevision(stream.family, revision)];
    }),
  );
}
