/** Reads blobs of a book. A missing blob that was erased is reported as erased, with the tombstone, not as a loss to be
 *  restored. */
import { type Digest, RollbookError, short } from "../../base/index.ts";
import type { Blob } from "../../store/index.ts";
import type { OpenBook } from "./open-book.ts";
import { resolveBlob } from "./resolve.ts";

/** `what` is the purpose of the read; the error message begins with it. */
export function readOf(book: OpenBook, what: string): (digest: Digest) => Promise<Blob | undefined> {
  return async (digest) => {
    const blob = await book.store.get(digest);
    if (blob !== undefined) return blob;
    const [tombstone] = (await book.index()).tombstonesOf(digest);
    if (tombstone === undefined) return undefined;
    throw new RollbookError(
      "erased",
      { what, digest, tombstone },
      `${what}: rows of it were erased on purpose, as the tombstone ${short(tombstone)} says. \`rollbook verify\` prints it. Cut a new batch with \`rollbook batch assemble\`.`,
    );
  };
}

/** Reads any blob, given by digest, the first digits of one, or the id of a record. */
export async function readBlob(book: OpenBook, name: string): Promise<Blob & { digest: Digest }> {
  const digest = resolveBlob(await book.index(), name);
  const blob = await book.store.get(digest);
  if (blob !== undefined) return { digest, kind: blob.kind, bytes: blob.bytes };
  throw new RollbookError(
    "missing-blob",
    { digest },
    `${digest} is damaged or gone. \`rollbook verify\` says how to restore it.`,
  );
}
