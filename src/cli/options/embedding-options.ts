/** Finds the embeddings of `train`, `evaluate` and `gate`: the named endpoint, and the cache of the book, if there is
 *  one. */
import type { EmbeddingPlace } from "../../book/embed/index.ts";
import type { Io } from "../io.ts";
import { type BookFlags, bookRoot } from "../with-book.ts";

export function embeddingPlace(io: Io, flags: BookFlags & { embeddings?: string }): EmbeddingPlace {
  return { url: flags.embeddings, key: io.env.ROLLBOOK_EMBEDDINGS_KEY, cache: bookRoot(io, flags) };
}
