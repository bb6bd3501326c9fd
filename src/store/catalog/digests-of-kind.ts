/** The digests of one kind in a book on disk. In: its directory and the kind. Out: digests, once each. Reads the headers of
 *  the packs and skips the payloads, so it takes as long as opening the book does. */
import type { Digest } from "../../base/index.ts";
import { bookPaths, listPacks, PACK_LARGE_KIND, PackFiles, parseLargeEntry } from "../pack/index.ts";

export function digestsOfKind(root: string, kind: string): Digest[] {
  const paths = bookPaths(root);
  const files = new PackFiles(paths);
  const found = new Set<Digest>();
  try {
    for (const { id } of listPacks(paths))
      files.walk(id, 0, (entry) => {
        const large = entry.kind === PACK_LARGE_KIND ? files.read(id, entry, entry.digest) : undefined;
        const { digest, kind: own } = (large && parseLargeEntry(large.bytes)) ?? entry;
        if (own === kind) found.add(digest);
      });
  } finally {
    files.close();
  }
  return [...found];
}
