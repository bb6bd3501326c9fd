/** Writes a signed head over everything in a book.
 *  In: a book that is open to write, with a key. Out: the head. A user who keeps it outside the book can check the
 *  book against it later. */
import { type Digest, RollbookError } from "../../base/index.ts";
import { BookHead, openRecord } from "../../contract/index.ts";
import type { BookOnDisk } from "../open/index.ts";

export async function writeHead({ store, root }: BookOnDisk): Promise<{ head: Digest; record: BookHead }> {
  const head = await store.head();
  if (head === undefined)
    throw new RollbookError(
      "no-key",
      { root },
      "a head must be signed, and there is no key. Make one with `rollbook keys new`.",
    );
  return { head: head.digest, record: openRecord(BookHead, head.bytes, head.digest) };
}
