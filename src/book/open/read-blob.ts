/** Reads blobs of a book for those who read a batch. What is missing because it was erased is told as erased, with the
 *  tombstone, and not as a loss to be restored. */
import { type Digest, RollbookError, short } from "../../base/index.ts";
import type { Blob } from "../../store/index.ts";
import type { OpenBook } from "./open-book.ts";

/** `what` is read for: it begins the message. */
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
