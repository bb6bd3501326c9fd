/** Removes the fields of erased records from the catalog file. In: the directory of a book. Out: a catalog file without
 *  them. */
import { whenFree } from "../disk/index.ts";
import { bookPaths } from "../pack/index.ts";
import { openCatalog } from "./catalog.ts";
import { openCatalogDatabase } from "./catalog-schema.ts";

/** Updates the catalog and leaves no bytes of removed rows in its file. */
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
