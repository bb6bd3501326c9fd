/** Lists the rollbacks of a book: which router was withdrawn, when, which one serves instead, and the evidence.
 *  In: an open book. Out: one entry for each sealed rollback, newest first. Writes nothing. */
import type { Digest } from "../../base/index.ts";
import { Rollback } from "../../contract/index.ts";
import { isReleasedSince } from "../../serve/index.ts";
import { readRecord } from "../../store/index.ts";
import { type OpenBook, splitByTrust } from "../open/index.ts";
import { policyReleasesOf } from "./policy-releases.ts";

export interface ListedRollback extends Omit<Rollback, "schema" | "evidence"> {
  /** Digest of the sealed record. It also holds every paired difference. */
  readonly record: Digest;
  /** `holds`: the router may not serve. `released-again`: a later verdict released the router. `untrusted`: the
   *  rollback has no effect, because no trusted key signed it. */
  readonly state: "holds" | "released-again" | "untrusted";
  readonly evidence: Omit<Rollback["evidence"], "terms" | "decisions">;
}

export async function listRollbacks(book: OpenBook): Promise<ListedRollback[]> {
  const index = await book.index();
  const records = index.ofKind(Rollback.kind);
  const { untrusted } = await splitByTrust(book, index, records);
  const ignored = new Set(untrusted.map(({ digest }) => digest));
  const standing = await policyReleasesOf(book).standing();
  const listed: ListedRollback[] = [];
  for (const { digest: record } of records) {
    const { schema: _, evidence, ...facts } = await readRecord(book.store, Rollback, record);
    const { terms: __, decisions: ___, ...summary } = evidence;
    const state = isReleasedSince(facts, standing) ? "released-again" : "holds";
    listed.push({
      ...{ record, ...facts, evidence: summary },
      state: ignored.has(record) ? "untrusted" : state,
    });
  }
  return listed.sort((a, b) => b.atMs - a.atMs || (a.record < b.record ? -1 : 1));
}
