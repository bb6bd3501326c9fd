/** Counts the gates that have already used the rows of a verdict, and the policies that they judged.
 *  In: a book, the verdict. Out: two numbers. Writes nothing. */
import type { Digest } from "../../base/index.ts";
import { GateVerdict, LoopEnvelope, Manifest, type Sealed } from "../../contract/index.ts";
import { readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";

export interface EarlierGates {
  readonly gates: number;
  /** A policy counts once for each gate that judged it: every look at the rows spends alpha. A dry run is not in the
   *  book, and counts only if the user of a later gate stated it. */
  readonly policies: number;
}

/** Counts verdicts of the book on the same rows, or on a log that shares a rollout with this one, because a log
 *  grows between two looks. The windows of a run have separate rows, so their verdicts count only if the rows are
 *  the same. */
export async function earlierGates(
  book: OpenBook,
  { digest: own, record: { data } }: Sealed<GateVerdict>,
  /** Manifest of the verdict's rows, if they come from this book. A verdict that is not sealed has stored none
   *  there. */
  rows: Sealed<Manifest> | undefined,
): Promise<EarlierGates> {
  const manifests = new Map<Digest, boolean>();
  let contents: ReadonlySet<Digest> | undefined;
  const artifactsOf = async (manifest: Digest) =>
    (await readRecord(book.store, Manifest, manifest)).artifacts.map(({ content }) => content);
  const isShared = async (manifest: Digest | undefined) => {
    if (manifest === undefined || rows === undefined) return false;
    const known = manifests.get(manifest) ?? manifest === rows.digest;
    if (known || manifests.has(manifest)) return known;
    contents ??= new Set(rows.record.artifacts.map(({ content }) => content));
    const shared = (await artifactsOf(manifest)).some((content) => contents!.has(content));
    manifests.set(manifest, shared);
    return shared;
  };
  const index = await book.index();
  const ofRuns = new Set<Digest>();
  for (const { digest } of index.ofKind(LoopEnvelope.kind)) {
    const { verdict } = await readRecord(book.store, LoopEnvelope, digest);
    if (verdict !== undefined) ofRuns.add(verdict);
  }
  const gates: GateVerdict[] = [];
  for (const { digest } of index.ofKind(GateVerdict.kind)) {
    if (digest === own) continue;
    const earlier = await readRecord(book.store, GateVerdict, digest);
    const { digest: rowsDigest, manifest } = earlier.data;
    if (rowsDigest !== data.digest && (ofRuns.has(digest) || !(await isShared(manifest)))) continue;
    gates.push(earlier);
  }
  gates.sort((a, b) => a.atMs - b.atMs);
  const policies = gates.reduce(
    (soFar, { rule, candidates }) => Math.max(soFar + candidates.length, rule.tried),
    0,
  );
  return { gates: gates.length, policies };
}
