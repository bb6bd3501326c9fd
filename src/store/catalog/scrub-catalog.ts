/** Takes what erased records said out of the file of the catalog. In: the directory of a book. Out: a catalog without it. */
import { whenFree } from "../disk/index.ts";
import { bookPaths } from "../pack/index.ts";
import { openCatalog } from "./catalog.ts";
import { openCatalogDatabase } from "./catalog-schema.ts";

/** Brings the catalog up to date and leaves nothing of removed rows in its file. */
export async function scrubCatalog(root: string): Promise<void> {
  const { catalog: path } = bookPaths(root);
  const catalog = openCatalog(root);
  try {
    await catalog.sync();
  } finally {
    catalog.close();
  }
  const db = openCatalogDatabase(path);
  try {
    await whenFree(() => db.exec("VACUUM"));
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    db.close();
  }
}
