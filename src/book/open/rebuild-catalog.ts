/** Deletes the catalog of a book and rebuilds it from the bytes. Out: the number of listed records, and the unreadable
 *  ones. */
import { type Catalog, openCatalog } from "../../store/index.ts";
import type { BookOnDisk } from "./open-book.ts";

export async function rebuildCatalog({ root }: BookOnDisk): Promise<Awaited<ReturnType<Catalog["rebuild"]>>> {
  const catalog = openCatalog(root);
  try {
    return await catalog.rebuild();
  } finally {
    catalog.close();
  }
}
