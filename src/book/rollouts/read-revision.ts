/** Reads a policy revision of a book by id, digest, or the first digits of one. If trust is required, a revision that
 *  no trusted key signed is refused: it decides what counts as fresh and what is trained further. */
import { PolicyRevision, type Sealed } from "../../contract/index.ts";
import { readSealed } from "../../keep/admit/index.ts";
import { type OpenBook, requireTrusted, resolveRevision } from "../open/index.ts";

export async function readRevision(
  book: OpenBook,
  name: string,
  family?: string,
): Promise<Sealed<PolicyRevision>> {
  const index = await book.index();
  const { digest, kind } = resolveRevision(index, name, family);
  await requireTrusted(book, index, [{ digest, kind }]);
  return readSealed((each) => book.store.get(each), PolicyRevision, digest);
}
