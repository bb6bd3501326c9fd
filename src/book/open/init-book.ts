/** Creates a book if there is none.
 *  In: a directory. Out: true if the book is new. Does not change an existing book. */
import { type Clock, systemClock } from "../../base/index.ts";
import { makeDirectory, openBook } from "../../store/index.ts";
import { DEFAULT_BOOK, isBook, requireWritable } from "./open-book.ts";
import { workingCopy } from "./working-copy.ts";

export async function initBook(
  book = DEFAULT_BOOK,
  { clock = systemClock }: { clock?: Clock } = {},
): Promise<{ book: string; created: boolean }> {
  const root = await workingCopy(book);
  const created = !isBook(root);
  makeDirectory(root);
  requireWritable(root);
  await (await openBook(root, { clock })).close();
  return { book, created };
}
