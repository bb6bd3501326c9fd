/** The tables of catalog.db. Only `lost` is original: it remembers roots whose pack has vanished. All other tables are
 *  derived from the packs. A file of another version, or one that SQLite cannot read, is created again. */
import { rmSync } from "node:fs";
import { RolloutEnvelope } from "../../contract/index.ts";
import { isCorrupt, openSqlite, type Sqlite } from "../disk/index.ts";
import { DIGESTS_TABLE } from "./digest-numbers.ts";

/** SQL for the end time of a run, from the catalog fields of its envelope. */
export const endedAt = (fields: string) => `json_extract(${fields}, '$.endedAtMs')`;

const VERSION = 9;
/** Time that a statement waits for another connection, which blocks the event loop; `whenFree` continues to wait. */
const BUSY_MS = 1000;
/** SQLite's default is 2 MB. With it a writer of thousands of rows reads the same pages repeatedly. */
const CACHE_KIB = 16_384;
/** Length of the WAL at which the writing connection checkpoints it; SQLite's default. A larger value means less work,
 *  but the connection that checkpoints waits longer. */
const CHECKPOINT_PAGES = 1000;
/** Checkpoint interval for a thread that does nothing else. */
export const SELDOM_PAGES = 16_000;

/** Only `digests` and `lost` hold digests. Elsewhere `number`, `source` and `target` are numbers of digests. */
const TABLES = `
  ${DIGESTS_TABLE}
  CREATE TABLE packs (number INTEGER PRIMARY KEY, pack TEXT NOT NULL UNIQUE, end INTEGER NOT NULL, sealed INTEGER NOT NULL);
  CREATE TABLE blobs (
    pack INTEGER NOT NULL, entry INTEGER NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL,
    large INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,
    PRIMARY KEY (pack, entry)
  ) WITHOUT ROWID;
  CREATE INDEX blobs_by_number ON blobs (number);
  CREATE TABLE records (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT, family TEXT, fields TEXT NOT NULL
  );
  CREATE INDEX records_by_kind ON records (kind, family, id);
  CREATE INDEX records_by_id ON records (id);
  CREATE INDEX runs_by_time ON records (${endedAt("fields")}) WHERE kind = '${RolloutEnvelope.kind}';
  CREATE TABLE refs (source INTEGER NOT NULL, target INTEGER NOT NULL, PRIMARY KEY (source, target)) WITHOUT ROWID;
  CREATE INDEX refs_by_target ON refs (target);
  CREATE TABLE origin (why TEXT NOT NULL, atMs INTEGER NOT NULL);
  CREATE TABLE lost (digest BLOB NOT NULL PRIMARY KEY, kind TEXT NOT NULL, pack TEXT NOT NULL) WITHOUT ROWID;
`;

/** Reason why the rows were made from the packs. A catalog knows nothing of losses before that; of a `new` book there
 *  are none, because it never had a pack. */
export type CatalogOrigin = "new" | "absent" | "damaged" | "other-version" | "rebuilt";

interface OpenDatabase {
  readonly checkpointPages?: number | undefined;
  /** Asked only if there is no catalog yet. */
  readonly hadPacks?: () => boolean;
}

/** Opens the database at `path`; creates it again if it is absent, damaged or of another version. */
export function openCatalogDatabase(path: string, options: OpenDatabase = {}): Sqlite {
  try {
    return openCurrent(path, options);
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    removeCatalogDatabase(path);
    return openCurrent(path, { ...options, why: "damaged" });
  }
}

export function removeCatalogDatabase(path: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
}

/** All packs with the end of their listed part. */
export function listedPacks(db: Sqlite): string {
  const query = "SELECT json_group_array(json_array(pack, end, sealed) ORDER BY pack) AS packs FROM packs";
  return db.prepare(query).get<{ packs: string }>()!.packs;
}

/** Replaces all rows by those of another database, in one transaction. Other connections keep the same file, and see
 *  either the old or the new rows. Returns false and changes nothing if the listed packs differ from `listed`: another
 *  process has read more, which the new rows may lack. */
export function replaceRows(db: Sqlite, path: string, listed?: string): boolean {
  db.prepare("ATTACH ? AS made").run(path);
  try {
    return db.transaction(() => {
      if (listed !== undefined && listedPacks(db) !== listed) return false;
      for (const table of ["digests", "packs", "blobs", "records", "refs", "lost"])
        db.exec(`DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM made.${table};`);
      noteOrigin(db, "rebuilt");
      return true;
    });
  } finally {
    db.exec("DETACH made");
  }
}

/** Uses SQLite's clock: the time is a fact of this file, not of the book. */
function noteOrigin(db: Sqlite, why: CatalogOrigin): void {
  db.exec("DELETE FROM origin");
  db.prepare("INSERT INTO origin VALUES (?, CAST(strftime('%s', 'now') AS INTEGER) * 1000)").run(why);
}

function openCurrent(
  path: string,
  {
    checkpointPages = CHECKPOINT_PAGES,
    hadPacks = () => true,
    why,
  }: OpenDatabase & { readonly why?: CatalogOrigin },
): Sqlite {
  const db = openSqlite(path, { busyTimeoutMs: BUSY_MS });
  db.exec(`PRAGMA cache_size = -${CACHE_KIB}; PRAGMA wal_autocheckpoint = ${checkpointPages}`);
  const version = () => db.prepare("PRAGMA user_version").get<{ user_version: number }>()!.user_version;
  try {
    // The version is nearly always current, and then a reader does not wait for writers.
    if (version() === VERSION) return db;
    db.transaction(() => {
      const found = version();
      if (found === VERSION) return;
      dropTables(db);
      db.exec(`${TABLES} PRAGMA user_version = ${VERSION};`);
      noteOrigin(db, why ?? (found !== 0 ? "other-version" : hadPacks() ? "absent" : "new"));
    });
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function dropTables(db: Sqlite): void {
  const tables = db.prepare(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
  );
  for (const { name } of tables.all<{ name: string }>())
    db.exec(`DROP TABLE "${name.replaceAll('"', '""')}"`);
}
