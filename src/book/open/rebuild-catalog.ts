/** Throws the catalog of a book away and makes it anew from the bytes. Out: what is listed, and what could not be read. */
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
