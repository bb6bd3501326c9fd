/** Reads packs into the tables of a catalog.
 *  In: packs, the existing rows. Out: rows for all intact entries. Continues each pack where the last sync ended. A
 *  block's rows and the new end are committed together, so a kill at any point costs only time. */

import { canonicalize, type Digest, digestToBytes, RollbookError } from "../../base/index.ts";
import { Tombstone } from "../../contract/index.ts";
import { isMissing, type Sqlite, type SqlValue } from "../disk/index.ts";
import {
  type BookPaths,
  type EntryStep,
  type LargeEntry,
  listPacks,
  openPack,
  PACK_FOOTER_KIND,
  PACK_HEADER_KIND,
  PACK_LARGE_KIND,
  type PackName,
  type PackReader,
  parseFooter,
  parseLargeEntry,
  readLarge,
  ScanBlock,
} from "../pack/index.ts";
import { forgetUnusedDigests, numberDigests, numberOf, withDigest } from "./digest-numbers.ts";
import { isRecordKind, isRootKind, listRecord } from "./record-facts.ts";

export interface SyncReport {
  readonly blobs: number;
  readonly records: number;
  /** Packs that have disappeared since the last sync: removed by gc, or lost. */
  readonly packsRemoved: number;
  /** Number of places without an intact entry; `scan` reports the fault. */
  readonly damaged: number;
  /** Blobs whose bytes do not match their kind. They are listed as blobs, not as records. */
  readonly undescribed: number;
}

/** Sums the reports of two syncs of one catalog. */
export function addReports(first: SyncReport | undefined, then: SyncReport): SyncReport {
  if (first === undefined) return then;
  return {
    blobs: first.blobs + then.blobs,
    records: first.records + then.records,
    packsRemoved: first.packsRemoved + then.packsRemoved,
    // The second sync finds the same damaged places again.
    damaged: then.damaged,
    undescribed: first.undescribed + then.undescribed,
  };
}

export async function syncCatalog(db: Sqlite, paths: BookPaths): Promise<SyncReport> {
  return new CatalogSync(db, paths).run();
}

interface PackRow {
  readonly number: number;
  readonly pack: string;
  readonly end: number;
  readonly sealed: number;
}

/** A future row of `blobs`, with the facts derived from its bytes. */
interface BlobRow {
  readonly entry: number;
  readonly digest: Digest;
  readonly kind: string;
  /** Large flag, offset and length. */
  readonly place: readonly [large: 0 | 1, offset: number, length: number];
  /** Id, family and fields. */
  readonly record?: readonly [id: string | null, family: string | null, fields: string];
  readonly targets?: readonly Digest[];
}

class CatalogSync {
  readonly #db: Sqlite;
  readonly #paths: BookPaths;
  readonly #block = new ScanBlock();
  readonly #tally = { blobs: 0, records: 0, packsRemoved: 0, damaged: 0, undescribed: 0 };

  constructor(db: Sqlite, paths: BookPaths) {
    this.#db = db;
    this.#paths = paths;
  }

  async run(): Promise<SyncReport> {
    const listed = listPacks(this.#paths);
    for (const pack of listed) {
      const row = this.#packRow(pack.id);
      if (row.sealed === 0) await this.#syncPack(pack, row);
    }
    // Last: a blob that gc moved is listed at its new place before its old place is removed.
    this.#forgetMissing(new Set(listed.map(({ id }) => id)));
    this.#forgetErased();
    return this.#tally;
  }

  async #syncPack(pack: PackName, row: PackRow): Promise<void> {
    const from = row.end;
    const opened = await openPack(this.#paths, pack, { from, block: this.#block });
    if (opened === undefined) return;
    const { reader, sealed } = opened;
    let read: "replaced" | { footer: number | undefined };
    try {
      read = await this.#readTail(reader, row);
    } finally {
      await reader.close();
    }
    const isCut = reader.size < from;
    const next = read === "replaced" ? "again" : this.#conclude(row, { sealed, isCut, footer: read.footer });
    if (next === "again") await this.#syncPack(pack, this.#packRow(pack.id));
  }

  /** Recovery may have cut off entries that were listed before. Then the pack is shorter, or its count differs. */
  #conclude(
    row: PackRow,
    { sealed, isCut, footer }: { sealed: boolean; isCut: boolean; footer: number | undefined },
  ): "done" | "again" {
    if (!sealed) return "done";
    return this.#db.transaction(() => {
      if (this.#endOf(row) === undefined) return "again";
      const isAstray = isCut || (footer !== undefined && footer !== this.#countOf(row));
      if (isAstray && row.end > 0) {
        this.#forgetPack(row);
        return "again";
      }
      if (footer !== undefined)
        this.#db.prepare("UPDATE packs SET sealed = 1 WHERE number = ?").run(row.number);
      return "done";
    });
  }

  /** Lists the entries after `row.end`. Returns the number of blobs in the footer, if the pack has one. */
  async #readTail(
    reader: PackReader,
    row: PackRow,
  ): Promise<"replaced" | { readonly footer: number | undefined }> {
    let rows: BlobRow[] = [];
    let from = row.end;
    let end = from;
    let footer: number | undefined;
    for (let step = reader.next(); step !== undefined; step = reader.next()) {
      if (step === "more") {
        if (!this.#insert(row, rows, { from, end })) return "replaced";
        rows = [];
        from = end;
        await reader.more();
      } else if (step.type === "damage") this.#tally.damaged++;
      else {
        end = step.end;
        // The footer counts the pack header, which is not listed.
        if (step.kind === PACK_FOOTER_KIND) footer = (parseFooter(step.bytes)?.entries ?? 0) - 1;
        else if (step.kind === PACK_LARGE_KIND) rows.push(...(await this.#rowOfLarge(row.pack, step)));
        else if (step.kind !== PACK_HEADER_KIND) rows.push(this.#rowOf(step));
      }
    }
    return this.#insert(row, rows, { from, end }) ? { footer } : "replaced";
  }

  #rowOf({ digest, kind, bytes, offset, payloadAt }: EntryStep): BlobRow {
    const facts = this.#factsOf(kind, bytes);
    return { entry: offset, digest, kind, place: [0, payloadAt, bytes.length], ...facts };
  }

  async #rowOfLarge(pack: string, step: EntryStep): Promise<BlobRow[]> {
    const entry = parseLargeEntry(step.bytes);
    if (entry === undefined) return [];
    const { digest, kind } = entry;
    const bytes = isRecordKind(kind) ? await this.#largeBytes(pack, entry) : undefined;
    const facts = bytes === undefined ? {} : this.#factsOf(kind, bytes);
    return [{ entry: step.offset, digest, kind, place: [1, 0, entry.bytes], ...facts }];
  }

  async #largeBytes(pack: string, entry: LargeEntry): Promise<Uint8Array | undefined> {
    try {
      const bytes = await readLarge(this.#paths, pack, entry);
      if (bytes instanceof Uint8Array) return bytes;
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
    this.#tally.damaged++;
    return undefined;
  }

  /** Catalog fields and references of a record. */
  #factsOf(kind: string, bytes: Uint8Array): Pick<BlobRow, "record" | "targets"> {
    if (!isRecordKind(kind)) return {};
    try {
      const { facts, references: targets } = listRecord(kind, bytes);
      const { id = null, family = null, fields } = facts;
      if (!isText(id) || !isText(family))
        throw new RollbookError("bad-id", { id, family }, "not text for a table");
      return { targets, record: [id, family, canonicalize(fields)] };
    } catch {
      this.#tally.undescribed++;
      return {};
    }
  }

  /** Returns false and changes nothing if another process has replaced the rows and entries before `from` are not
   *  listed. */
  #insert(pack: PackRow, rows: readonly BlobRow[], { from, end }: { from: number; end: number }): boolean {
    const db = this.#db;
    const isListed = () => (this.#endOf(pack) ?? -1) >= from;
    if (end === from) return isListed(); // most packs have nothing new, and a transaction waits for other writers
    return db.transaction(() => {
      if (!isListed()) return false;
      this.#foundAgain(rows);
      const numberFor = numberDigests(
        db,
        rows.flatMap(({ digest, targets = [] }) => [digest, ...targets]),
      );
      const records = rows.filter(({ record }) => record !== undefined);
      this.#tally.blobs += insertRows(
        db,
        "blobs",
        rows.map(({ entry, digest, kind, place }) => [pack.number, entry, numberFor(digest), kind, ...place]),
      );
      this.#tally.records += insertRows(
        db,
        "records",
        records.map(({ digest, kind, record }) => [numberFor(digest), kind, ...record!]),
      );
      insertRows(
        db,
        "refs",
        records.flatMap(({ digest, targets = [] }) =>
          targets.map((target) => [numberFor(digest), numberFor(target)]),
        ),
      );
      db.prepare("UPDATE packs SET end = max(end, ?) WHERE number = ?").run(end, pack.number);
      return true;
    });
  }

  /** Usually no root is lost, and then no search is needed. */
  #foundAgain(rows: readonly BlobRow[]): void {
    if (!this.#anyLost()) return;
    const found = this.#db.prepare("DELETE FROM lost WHERE digest = ?");
    for (const { digest } of rows) found.run(digestToBytes(digest));
  }

  /** Only `transaction` takes locks. libsql leaves a prepared statement unfinished if it meets a lock, and then nothing
   *  commits. */
  #packRow(pack: string): PackRow {
    const find = () => this.#db.prepare("SELECT * FROM packs WHERE pack = ?").get<PackRow>(pack);
    const add = () =>
      this.#db.prepare("INSERT OR IGNORE INTO packs (pack, end, sealed) VALUES (?, 0, 0)").run(pack);
    const listed = find();
    if (listed !== undefined) return listed;
    return this.#db.transaction(() => {
      add();
      return find()!;
    });
  }

  /** End of the listed part of the pack; undefined if its number now belongs to another pack. */
  #endOf({ number, pack }: PackRow): number | undefined {
    const query = this.#db.prepare("SELECT end FROM packs WHERE number = ? AND pack = ?");
    return query.get<{ end: number }>(number, pack)?.end;
  }

  #countOf({ number }: PackRow): number {
    const count = this.#db.prepare("SELECT count(*) AS blobs FROM blobs WHERE pack = ?");
    return count.get<{ blobs: number }>(number)!.blobs;
  }

  #forgetMissing(listed: ReadonlySet<string>): void {
    const isGone = (row: PackRow) => !listed.has(row.pack);
    const packs = () => this.#db.prepare("SELECT * FROM packs").all<PackRow>();
    if (!packs().some(isGone)) return;
    this.#db.transaction(() => {
      // Read both lists again: another process may have replaced the rows, and may have listed a newer pack.
      const here = new Set(listPacks(this.#paths).map(({ id }) => id));
      const gone = packs().filter((row) => isGone(row) && !here.has(row.pack));
      this.#tally.packsRemoved = gone.length;
      for (const row of gone) {
        this.#rememberRoots(row);
        this.#db.prepare("DELETE FROM blobs WHERE pack = ?").run(row.number);
        this.#db.prepare("DELETE FROM packs WHERE number = ?").run(row.number);
      }
      this.#db.exec(`DELETE FROM lost WHERE ${numberOf("lost.digest")} IN (SELECT number FROM blobs)`);
      this.#forgetLoose();
    });
  }

  /** gc moves roots and never removes them: a root that is in no other pack was lost with its pack. */
  #rememberRoots({ number, pack }: PackRow): void {
    const blobs = this.#db.prepare(
      `SELECT DISTINCT digest, kind FROM blobs ${withDigest("blobs.number")} WHERE pack = ?`,
    );
    const lost = this.#db.prepare("INSERT OR IGNORE INTO lost VALUES (?, ?, ?)");
    for (const { digest, kind } of blobs.all<{ digest: Uint8Array; kind: string }>(number))
      if (isRootKind(kind)) lost.run(digest, kind, pack);
  }

  /** A root named by a tombstone was erased, not lost with its pack. */
  #forgetErased(): void {
    if (!this.#anyLost()) return;
    this.#db.transaction(() =>
      this.#db
        .prepare(`DELETE FROM lost WHERE ${numberOf("lost.digest")} IN
        (SELECT target FROM refs JOIN records ON records.number = source WHERE records.kind = ?)`)
        .run(Tombstone.kind),
    );
  }

  #anyLost(): boolean {
    return this.#db.prepare("SELECT 1 AS one FROM lost LIMIT 1").get() !== undefined;
  }

  /** Removes the rows of a pack, so that the pack is read again from its start. Call inside a transaction. */
  #forgetPack({ number }: PackRow): void {
    this.#db.prepare("DELETE FROM blobs WHERE pack = ?").run(number);
    this.#db.prepare("UPDATE packs SET end = 0 WHERE number = ?").run(number);
    this.#forgetLoose();
  }

  /** Removes records and references of blobs that are in no pack. */
  #forgetLoose(): void {
    this.#db.exec(`DELETE FROM records WHERE number NOT IN (SELECT number FROM blobs);
      DELETE FROM refs WHERE source NOT IN (SELECT number FROM blobs);`);
    forgetUnusedDigests(this.#db);
  }
}

/** True for text that SQLite stores unchanged. */
function isText(value: string | null): boolean {
  return value === null || (value.isWellFormed() && !value.includes("\0"));
}

/** Inserts the rows that are missing, and returns their number. Uses one statement for all rows, because binding the
 *  arguments of a row costs more than the row. */
function insertRows(db: Sqlite, table: string, rows: readonly (readonly SqlValue[])[]): number {
  if (rows.length === 0) return 0;
  const columns = rows[0]!.map((_, column) => `value ->> ${column}`).join(", ");
  return db
    .prepare(`INSERT OR IGNORE INTO ${table} SELECT ${columns} FROM json_each(?)`)
    .run(JSON.stringify(rows)).changes;
}
