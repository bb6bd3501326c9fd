/** Records of revisions known only from logged choices: routers, models and agents. In: a stream's family and
 *  revision. Out: a PolicyRevision. The same revision gives the same bytes in every process, so a book keeps it
 *  once. Does not record the time or the parents of a revision: a process that knows them seals another record. */

import { nameRevision, type PolicyRevision, type Sealed, type Stream } from "../contract/index.ts";

/** Names every revision of the streams that is not in `known`, and adds it to `known`. */
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
