/** Reads packs into the tables of a catalog.
 *  In: packs, the rows there are. Out: rows for all whole entries. Reads each pack from where it was
 *  left; a block's rows and the new end are committed together, so a kill at any point costs nothing but time. */

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
  /** Packs that are gone since the last time: by gc, or lost. */
  readonly packsRemoved: number;
  /** Places where no whole entry stands; `scan` says what is wrong there. */
  readonly damaged: number;
  /** Blobs that are not what their kind says. They are listed as blobs, not as records. */
  readonly undescribed: number;
}

/** Of a catalog that was synced twice. */
export function addReports(first: SyncReport | undefined, then: SyncReport): SyncReport {
  if (first === undefined) return then;
  return {
    blobs: first.blobs + then.blobs,
    records: first.records + then.records,
    packsRemoved: first.packsRemoved + then.packsRemoved,
    // A place without a whole entry is met again.
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

/** A row of `blobs` to come, with what follows from its bytes. */
interface BlobRow {
  readonly entry: number;
  readonly digest: Digest;
  readonly kind: string;
  /** Large or not, offset and length. */
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
    // Last: what gc has moved is listed in its new place before it is forgotten in the old one.
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

  /** What recovery cut off may have been listed before: then the pack is shorter, or its count is another. */
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

  /** Lists what stands behind `row.end`; says how many blobs the footer counts, if there is one. */
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

  /** What a record says of itself, and what it refers to. */
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

  /** False, and nothing is done, if another process has replaced the rows meanwhile and what is before these is not listed. */
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

  /** Nearly always nothing is lost, and then there is nothing to look for. */
  #foundAgain(rows: readonly BlobRow[]): void {
    if (!this.#anyLost()) return;
    const found = this.#db.prepare("DELETE FROM lost WHERE digest = ?");
    for (const { digest } of rows) found.run(digestToBytes(digest));
  }

  /** Locks are taken by `transaction` alone: libsql leaves a prepared statement that met one unfinished, and then nothing
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

  /** How far the pack is listed now; undefined if its number has gone to another. */
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
      // Both again: another process may have replaced the rows, and may have read a pack that came since.
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

  /** gc moves roots, and never removes them: one that shows up nowhere else went with its pack. */
  #rememberRoots({ number, pack }: PackRow): void {
    const blobs = this.#db.prepare(
      `SELECT DISTINCT digest, kind FROM blobs ${withDigest("blobs.number")} WHERE pack = ?`,
    );
    const lost = this.#db.prepare("INSERT OR IGNORE INTO lost VALUES (?, ?, ?)");
    for (const { digest, kind } of blobs.all<{ digest: Uint8Array; kind: string }>(number))
      if (isRootKind(kind)) lost.run(digest, kind, pack);
  }

  /** What a tombstone names did not go with its pack: it was erased. */
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

  /** Removes the rows of a pack, which is then read from its beginning. Call inside a transaction. */
  #forgetPack({ number }: PackRow): void {
    this.#db.prepare("DELETE FROM blobs WHERE pack = ?").run(number);
    this.#db.prepare("UPDATE packs SET end = 0 WHERE number = ?").run(number);
    this.#forgetLoose();
  }

  /** Records and references of blobs that are nowhere any more. */
  #forgetLoose(): void {
    this.#db.exec(`DELETE FROM records WHERE number NOT IN (SELECT number FROM blobs);
      DELETE FROM refs WHERE source NOT IN (SELECT number FROM blobs);`);
    forgetUnusedDigests(this.#db);
  }
}

/** What SQLite keeps as it is. */
function isText(value: string | null): boolean {
  return value === null || (value.isWellFormed() && !value.includes("\0"));
}

/** Adds rows that are not there yet, and says how many: all in one statement, since a statement for each row spends more time
 *  on its arguments than on its row. */
function insertRows(db: Sqlite, table: string, rows: readonly (readonly SqlValue[])[]): number {
  if (rows.length === 0) return 0;
  const columns = rows[0]!.map((_, column) => `value ->> ${column}`).join(", ");
  return db
    .prepare(`INSERT OR IGNORE INTO ${table} SELECT ${columns} FROM json_each(?)`)
    .run(JSON.stringify(rows)).changes;
}
