/** A SQLite index over a book: its records, the places of their bytes, and their references.
 *  In: the packs. Out: answers to queries. `sync` reads only new entries; `rebuild` reads everything; both give the
 *  same rows. Lists intact entries only; the scan reports damage. Never needed to read a blob. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { compareUtf8, type Digest, digestFromBytes, digestToBytes, RollbookError } from "../../base/index.ts";
import { RolloutContent, RolloutEnvelope, Tombstone } from "../../contract/index.ts";
import type { Location } from "../blob/index.ts";
import {
  isCorrupt,
  makeDirectory,
  type Sqlite,
  type SqlValue,
  type Statement,
  whenFree,
} from "../disk/index.ts";
import { type BookPaths, bookPaths, largePath, type PackPlace, roundUp8 } from "../pack/index.ts";
import {
  type CatalogOrigin,
  endedAt,
  listedPacks,
  openCatalogDatabase,
  removeCatalogDatabase,
  replaceRows,
  SELDOM_PAGES,
} from "./catalog-schema.ts";
import { addReports, type SyncReport, syncCatalog } from "./catalog-sync.ts";
import { boundDigests, numberOf, numbersOf, withDigest } from "./digest-numbers.ts";

export interface RecordFilter {
  readonly kind?: string;
  readonly family?: string;
  readonly id?: string;
}

export interface CatalogRecord {
  readonly digest: Digest;
  readonly kind: string;
  readonly id?: string;
  readonly family?: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface CatalogRun {
  readonly envelope: CatalogRecord;
  readonly content: CatalogRecord;
}

interface LostRecord {
  readonly digest: Digest;
  readonly kind: string;
  readonly pack: string;
}

interface KindTotal {
  readonly kind: string;
  readonly blobs: number;
  readonly bytes: number;
}

/** Opens the catalog of a book. A catalog that is absent, damaged or of another version starts empty. Call `sync` next.
 *  `seldom`: for a thread that does nothing else, which may checkpoint many changes at once. */
export function openCatalog(root: string, { seldom = false }: { readonly seldom?: boolean } = {}): Catalog {
  return new Catalog(bookPaths(root), seldom ? SELDOM_PAGES : undefined);
}

const RECORDS = `SELECT digest, kind, id, family, fields FROM records ${withDigest("records.number")}`;

/** Few records share an id, so a query with an id uses the index of ids. The index of kinds would only avoid the sort.
 *  (A column with a leading plus is not looked up in an index.) */
export function recordsQuery({ kind, family, id }: RecordFilter): { sql: string; values: string[] } {
  const wanted = Object.entries({ kind, family, id }).filter(([, value]) => value !== undefined);
  const terms = wanted.map(([name]) => `${id === undefined || name === "id" ? "" : "+"}${name} = ?`);
  const where = terms.length === 0 ? "" : `WHERE ${terms.join(" AND ")}`;
  const sql = `${RECORDS} ${where} ORDER BY kind, family, id, digest`;
  return { sql, values: wanted.map(([, value]) => value!) };
}

/** By default SQLite would use the index of kinds and sort all rows. INDEXED BY makes it read in order, so the first
 *  rows come without waiting for the rest. `runs` sorts the ids of runs that ended at the same time. */
const RUNS = `SELECT contents.kind, contents.id, contents.family, contents.fields, named.digest,
    own.digest AS ownDigest, runs.fields AS ownFields
  FROM records AS runs INDEXED BY runs_by_time
  CROSS JOIN digests AS named ON named.digest = unhex(substr(json_extract(runs.fields, '$.content'), 8))
  CROSS JOIN records AS contents ON contents.number = named.number
  CROSS JOIN digests AS own ON own.number = runs.number
  WHERE runs.kind = '${RolloutEnvelope.kind}' ORDER BY ${endedAt("runs.fields")} DESC`;

/** Kinds are literals in the text: because of the index `runs_by_time`, SQLite prepares a statement again for each
 *  value bound to `kind`. */
const NAMED = `SELECT
    EXISTS (SELECT 1 FROM records WHERE id = ? AND +kind = '${RolloutContent.kind}') AS held,
    (SELECT count(*) FROM records WHERE kind = '${Tombstone.kind}') AS tombstones`;

/** All digests except those that are only targets of references. */
const LISTED = `SELECT coalesce(digest, zeroblob(32)) AS digest FROM (
    SELECT number FROM blobs UNION SELECT source FROM refs
    UNION SELECT number FROM records WHERE number NOT IN (SELECT number FROM digests)
    UNION SELECT number FROM digests WHERE number NOT IN (SELECT target FROM refs)
  ) LEFT JOIN digests USING (number)`;

export class Catalog {
  readonly #paths: BookPaths;
  readonly #checkpointPages: number | undefined;
  readonly #statements = new Map<string, Statement>();
  #db: Sqlite;
  /** Names of erased rollouts, and the number of tombstones they were read from. */
  #erased: { readonly tombstones: number; readonly ids: ReadonlySet<string> } | undefined;

  constructor(paths: BookPaths, checkpointPages?: number) {
    this.#paths = paths;
    this.#checkpointPages = checkpointPages;
    this.#db = openCatalogDatabase(paths.catalog, { checkpointPages, hadPacks: () => hadPacks(paths) });
  }

  /** Updates the catalog from the packs. */
  async sync(): Promise<SyncReport> {
    try {
      return await whenFree(() => syncCatalog(this.#db, this.#paths));
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      this.#startOver();
      return syncCatalog(this.#db, this.#paths);
    }
  }

  /** Discards all rows and reads the whole book. If another process lists more meanwhile, the rebuild continues until
   *  it has those rows too. */
  async rebuild(): Promise<SyncReport> {
    const beside = join(this.#paths.tmp, `catalog.${process.pid}.db`);
    // A copy of a book may lack the empty folders.
    makeDirectory(this.#paths.tmp);
    removeCatalogDatabase(beside);
    try {
      let report: SyncReport | undefined;
      for (;;) {
        const listed = this.#unlessCorrupt(() => listedPacks(this.#db));
        report = addReports(report, await this.#makeAt(beside));
        if (await whenFree(() => this.#unlessCorrupt(() => replaceRows(this.#db, beside, listed))))
          return report;
      }
    } finally {
      removeCatalogDatabase(beside);
    }
  }

  async #makeAt(path: string): Promise<SyncReport> {
    const made = openCatalogDatabase(path);
    try {
      return await syncCatalog(made, this.#paths);
    } finally {
      made.close();
    }
  }

  /** Replaces a damaged file by an empty catalog, and asks again. */
  #unlessCorrupt<T>(ask: () => T): T {
    try {
      return ask();
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      this.#startOver();
      return ask();
    }
  }

  /** Records in the order of kind, family, id and digest. */
  *records(filter: RecordFilter = {}): IterableIterator<CatalogRecord> {
    const { sql, values } = recordsQuery(filter);
    for (const row of this.#db.prepare(sql).iterate<RecordRow>(...values)) yield recordOf(row);
  }

  /** Envelopes with their contents, the latest end first. Skips an envelope whose content is missing. */
  *runs(): IterableIterator<CatalogRun> {
    let together: (CatalogRun & { endedAtMs: number })[] = [];
    for (const { ownDigest, ownFields, ...content } of this.#db.prepare(RUNS).iterate<RunRow>()) {
      const own = {
        digest: ownDigest,
        kind: RolloutEnvelope.kind,
        id: null,
        family: null,
        fields: ownFields,
      };
      const envelope = recordOf(own);
      const { endedAtMs } = envelope.fields as { endedAtMs: number };
      if (together.length > 0 && together[0]!.endedAtMs !== endedAtMs) {
        yield* together.length === 1 ? together : together.sort(byId);
        together = [];
      }
      together.push({ envelope, content: recordOf(content), endedAtMs });
    }
    yield* together.sort(byId);
  }

  record(digest: Digest): CatalogRecord | undefined {
    const query = this.#statement(`${RECORDS} WHERE records.number = ${numberOf()}`);
    const row = query.get<RecordRow>(digestToBytes(digest));
    return row === undefined ? undefined : recordOf(row);
  }

  /** Records of these digests, in no order. */
  recordsWith(digests: readonly Digest[]): CatalogRecord[] {
    const query = this.#statement(`${RECORDS} WHERE records.number IN ${numbersOf()}`);
    return query.all<RecordRow>(boundDigests(digests)).map(recordOf);
  }

  /** Records of these kinds that refer to one of these digests, in no order. */
  recordsReferringTo(digests: readonly Digest[], kinds: readonly string[]): CatalogRecord[] {
    const query = this.#statement(`${RECORDS}
      WHERE records.number IN (SELECT source FROM refs WHERE target IN ${numbersOf()})
      AND +kind IN (SELECT value FROM json_each(?))`);
    return query.all<RecordRow>(boundDigests(digests), JSON.stringify(kinds)).map(recordOf);
  }

  /** Records whose digest begins with these hex digits. */
  recordsStarting(hex: string): CatalogRecord[] {
    const query = this.#db.prepare(`SELECT digest, kind, id, family, fields
      FROM digests CROSS JOIN records USING (number) WHERE digest BETWEEN ? AND ? ORDER BY digest`);
    return query.all<RecordRow>(...digestsBetween(hex)).map(recordOf);
  }

  /** Blobs of any kind whose digest begins with these hex digits. */
  blobsStarting(hex: string): Digest[] {
    const query = `SELECT digest FROM digests WHERE digest BETWEEN ? AND ?
      AND number IN (SELECT number FROM blobs) ORDER BY digest`;
    return this.#digests(query, ...digestsBetween(hex));
  }

  /** Tells if the book holds a rollout of this name, and if it erased one. One statement, because a gateway asks for
   *  every new name. Tombstones are read again only when their number has grown. */
  rolloutNamed(id: string): { readonly isHeld: boolean; readonly isErased: boolean } {
    const { held, tombstones } = this.#statement(NAMED).get<{ held: number; tombstones: number }>(id)!;
    if (this.#erased?.tombstones !== tombstones) {
      const all = [...this.records({ kind: Tombstone.kind })];
      const ids = new Set(all.flatMap(({ fields }) => (fields as { rollouts: string[] }).rollouts));
      this.#erased = { tombstones, ids };
    }
    return { isHeld: held === 1, isErased: this.#erased.ids.has(id) };
  }

  /** Records of this kind with one of these ids. */
  digestsOf(kind: string, ids: readonly string[]): { id: string; digest: Digest }[] {
    // Usually one id is asked for: without a list the query takes half the time.
    const [where, value] =
      ids.length === 1
        ? ["id = ?", ids[0]!]
        : ["id IN (SELECT value FROM json_each(?))", JSON.stringify(ids)];
    const query = this.#statement(
      `SELECT id, digest FROM records ${withDigest("records.number")} WHERE ${where} AND +kind = ?`,
    );
    const rows = query.all<{ id: string; digest: Uint8Array }>(value, kind);
    return rows.map(({ id, digest }) => ({ id, digest: digestFromBytes(digest) }));
  }

  /** One location of the blob's bytes; the book reads and checks them. */
  locate(digest: Digest): Location | undefined {
    const query = this.#statement(`SELECT packs.pack, kind, large, offset, length
      FROM blobs JOIN packs ON packs.number = blobs.pack WHERE blobs.number = ${numberOf()} ORDER BY packs.pack, entry LIMIT 1`);
    const row = query.get<LocationRow>(digestToBytes(digest));
    if (row === undefined) return undefined;
    const { pack, kind, large, offset, length } = row;
    if (large === 1) return { file: largePath(pack, { digest, kind }), offset, length };
    const isOpen = existsSync(this.#paths.openPack(pack));
    return { file: `packs/${pack}.${isOpen ? "open" : "pack"}`, offset, length };
  }

  entryOf(digest: Digest): PackPlace | undefined {
    const query =
      this.#statement(`SELECT packs.pack, entry, offset, length FROM blobs JOIN packs ON packs.number = blobs.pack
      WHERE blobs.number = ${numberOf()} AND large = 0 ORDER BY packs.pack, entry LIMIT 1`);
    const row = query.get<{ pack: string; entry: number; offset: number; length: number }>(
      digestToBytes(digest),
    );
    if (row === undefined) return undefined;
    const { pack, entry, offset, length } = row;
    return { pack, offset: entry, bytes: roundUp8(offset - entry + length) };
  }

  referencesOf(digest: Digest): Digest[] {
    const query = `SELECT digest FROM refs ${withDigest("target")} WHERE source = ${numberOf()} ORDER BY digest`;
    return this.#digests(query, digestToBytes(digest));
  }

  referrersOf(digest: Digest): Digest[] {
    const query = `SELECT digest FROM refs ${withDigest("source")} WHERE target = ${numberOf()} ORDER BY digest`;
    return this.#digests(query, digestToBytes(digest));
  }

  /** Records of this kind that refer to `digest`. */
  referrersOfKind(digest: Digest, kind: string): Digest[] {
    return this.#digests(
      `SELECT digest FROM refs CROSS JOIN records ON records.number = source ${withDigest("source")}
        WHERE target = ${numberOf()} AND +kind = ? ORDER BY digest`,
      digestToBytes(digest),
      kind,
    );
  }

  /** Digests that records of this kind refer to and the book does not hold. */
  danglingTargets(kind: string): Digest[] {
    return this.#digests(
      `SELECT DISTINCT digest FROM records CROSS JOIN refs ON refs.source = records.number ${withDigest("target")}
        WHERE records.kind = ? AND target NOT IN (SELECT number FROM blobs) ORDER BY digest`,
      kind,
    );
  }

  /** Roots that were lost with their pack since the catalog was last rebuilt. */
  lost(): LostRecord[] {
    const rows = this.#db
      .prepare("SELECT * FROM lost ORDER BY digest")
      .all<{ digest: Uint8Array; kind: string; pack: string }>();
    return rows.map((row) => ({ digest: digestFromBytes(row.digest), kind: row.kind, pack: row.pack }));
  }

  /** Stored blobs by kind, including copies. */
  totals(): KindTotal[] {
    const query =
      "SELECT kind, count(*) AS blobs, sum(length) AS bytes FROM blobs GROUP BY kind ORDER BY kind";
    return this.#db.prepare(query).all<KindTotal>();
  }

  /** Number of distinct blobs. */
  distinctBlobs(): number {
    return this.#db.prepare("SELECT count(DISTINCT number) AS blobs FROM blobs").get<{ blobs: number }>()!
      .blobs;
  }

  /** Time and reason of the last creation of the rows from the packs. */
  origin(): { readonly why: CatalogOrigin; readonly atMs: number } {
    return this.#statement("SELECT why, atMs FROM origin").get<{ why: CatalogOrigin; atMs: number }>()!;
  }

  /** True if the blob is listed at exactly this place. */
  lists({ digest, kind, location }: { digest: Digest; kind: string; location: Location }): boolean {
    const query = this.#statement(`SELECT packs.pack, large, kind, offset, length
      FROM blobs JOIN packs ON packs.number = blobs.pack WHERE blobs.number = ${numberOf()}`);
    return query.all<LocationRow>(digestToBytes(digest)).some((row) => {
      const file = row.large === 1 ? largePath(row.pack, { digest, kind }) : `packs/${row.pack}`;
      const { offset, length } = location;
      return row.kind === kind && row.offset === offset && row.length === length && isAt(location.file, file);
    });
  }

  /** Digests of all listed blobs and sources of references, and digests that no row needs. A row whose digest is
   *  missing gives zeros. */
  *listed(): IterableIterator<Digest> {
    for (const { digest } of this.#db.prepare(LISTED).iterate<{ digest: Uint8Array }>())
      yield digestFromBytes(digest);
  }

  close(): void {
    this.#db.close();
  }

  #digests(query: string, ...values: SqlValue[]): Digest[] {
    const rows = this.#statement(query).all<{ digest: Uint8Array }>(...values);
    return rows.map((row) => digestFromBytes(row.digest));
  }

  /** Preparing costs more than looking up one row, so frequent statements are prepared once. */
  #statement(sql: string): Statement {
    const known = this.#statements.get(sql) ?? this.#db.prepare(sql);
    this.#statements.set(sql, known);
    return known;
  }

  #startOver(): void {
    this.#db.close();
    this.#statements.clear();
    removeCatalogDatabase(this.#paths.catalog);
    this.#db = openCatalogDatabase(this.#paths.catalog, { checkpointPages: this.#checkpointPages });
  }
}

/** True if the book has packs or had some: head.json and large files remain if all packs are lost. A copy of a book may
 *  lack the empty folders. */
function hadPacks({ packs, large, head }: BookPaths): boolean {
  const hasFiles = (folder: string) => existsSync(folder) && readdirSync(folder).length > 0;
  return hasFiles(packs) || hasFiles(large) || existsSync(head);
}

function byId(a: CatalogRun, b: CatalogRun): number {
  return (
    compareUtf8(a.content.id ?? "", b.content.id ?? "") || (a.envelope.digest < b.envelope.digest ? -1 : 1)
  );
}

interface RecordRow {
  readonly digest: Uint8Array;
  readonly kind: string;
  readonly id: string | null;
  readonly family: string | null;
  readonly fields: string;
}

interface RunRow extends RecordRow {
  readonly ownDigest: Uint8Array;
  readonly ownFields: string;
}

interface LocationRow {
  readonly pack: string;
  readonly kind: string;
  readonly large: number;
  readonly offset: number;
  readonly length: number;
}

/** First and last digest that begin with these hex digits. */
function digestsBetween(hex: string): [Uint8Array, Uint8Array] {
  if (!/^[0-9a-f]{0,64}$/.test(hex))
    throw new RollbookError("bad-digest", { hex }, `${hex} is not hex digits.`);
  return [Buffer.from(hex.padEnd(64, "0"), "hex"), Buffer.from(hex.padEnd(64, "f"), "hex")];
}

/** A pack may be sealed meanwhile, which changes its file extension. */
function isAt(file: string, wanted: string): boolean {
  return file === wanted || file === `${wanted}.open` || file === `${wanted}.pack`;
}

function recordOf(row: RecordRow): CatalogRecord {
  return {
    digest: digestFromBytes(row.digest),
    kind: row.kind,
    ...(row.id === null ? {} : { id: row.id }),
    ...(row.family === null ? {} : { family: row.family }),
    fields: JSON.parse(row.fields) as CatalogRecord["fields"],
  };
}
