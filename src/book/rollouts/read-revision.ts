/** Reads a policy revision of a book by what people call it: an id, a digest, or the first digits of one. */
import { PolicyRevision, type Sealed } from "../../contract/index.ts";
import { readSealed } from "../../keep/admit/index.ts";
import { type OpenBook, resolveRevision } from "../open/index.ts";

export async function readRevision(
  book: OpenBook,
  name: string,
  family?: string,
): Promise<Sealed<PolicyRevision>> {
  const { digest } = resolveRevision(await book.index(), name, family);
  return readSealed((each) => book.store.get(each), PolicyRevision, digest);
}
