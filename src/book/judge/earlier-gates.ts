/** Counts the gates that have already looked at the rows of a verdict. In: a book, the verdict. Out: a number. Writes nothing. */
import type { Digest } from "../../base/index.ts";
import { GateVerdict, Manifest, type Sealed } from "../../contract/index.ts";
import { readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";

/** Verdicts of the book by the same rows, or by a log that shares a rollout with this one: a log grows between two looks. */
export async function earlierGates(
  book: OpenBook,
  { digest: own, record: { data } }: Sealed<GateVerdict>,
): Promise<number> {
  const manifests = new Map<Digest, boolean>();
  let contents: ReadonlySet<Digest> | undefined;
  const artifactsOf = async (manifest: Digest) =>
    (await readRecord(book.store, Manifest, manifest)).artifacts.map(({ content }) => content);
  const isShared = async (manifest: Digest | undefined) => {
    if (manifest === undefined || data.manifest === undefined) return false;
    const known = manifests.get(manifest) ?? manifest === data.manifest;
    if (known || manifests.has(manifest)) return known;
    contents ??= new Set(await artifactsOf(data.manifest));
    const shared = (await artifactsOf(manifest)).some((content) => contents!.has(content));
    manifests.set(manifest, shared);
    return shared;
  };
  let count = 0;
  for (const { digest } of (await book.index()).ofKind(GateVerdict.kind)) {
    if (digest === own) continue;
    const earlier = (await readRecord(book.store, GateVerdict, digest)).data;
    if (earlier.digest === data.digest || (await isShared(earlier.manifest))) count++;
  }
  return count;
}
