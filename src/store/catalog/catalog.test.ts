import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Digest, manualClock } from "../../base/index.ts";
import { RolloutContent, Tombstone } from "../../contract/index.ts";
import { MEDIA_KIND } from "../../contract/rollout/call.ts";
import { Task } from "../../contract/task/task.ts";
import { type Book, openBook } from "../book.ts";
import { openSqlite } from "../disk/sqlite.ts";
import { collectGarbage } from "../gc/index.ts";
import { bookPaths } from "../pack/index.ts";
import { type Catalog, openCatalog, recordsQuery } from "./catalog.ts";
import { openCatalogDatabase, replaceRows } from "./catalog-schema.ts";
import { syncCatalog } from "./catalog-sync.ts";

let scratch = "";
let made = 0;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "rollbook-catalog-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const fresh = () => join(scratch, String(made++));
const clock = manualClock(1_700_000_000_000);

interface Note {
  id: string;
  family?: string;
  text: string;
  to: Digest[];
}
/** A catalog lists the id, the family and the short fields of any record. */
const NOTE = Task.kind;
const putNote = (book: Book, note: Note) => book.put(NOTE, Buffer.from(JSON.stringify(note)));
const notesIn = (catalog: Catalog) => [...catalog.records({ kind: NOTE })].length;

/** All rows, with packs by name and digests in full, because numbers depend on the order of discovery. */
function rowsOf(root: string): unknown {
  const db = openSqlite(join(root, "catalog.db"));
  const rows = {
    packs: db.prepare("SELECT pack, end, sealed FROM packs ORDER BY pack").all(),
    digests: db.prepare("SELECT hex(digest) AS digest FROM digests ORDER BY digest").all(),
    blobs: db
      .prepare(`SELECT p.pack, entry, hex(digest) AS digest, kind, large, offset, length FROM blobs b
        JOIN packs p ON p.number = b.pack JOIN digests USING (number) ORDER BY p.pack, entry`)
      .all(),
    records: db
      .prepare(`SELECT hex(digest) AS digest, kind, id, family, fields FROM records
        JOIN digests USING (number) ORDER BY digest`)
      .all(),
    refs: db
      .prepare(`SELECT hex(s.digest) AS s, hex(t.digest) AS t FROM refs
        JOIN digests s ON s.number = source JOIN digests t ON t.number = target ORDER BY s, t`)
      .all(),
  };
  db.close();
  return rows;
}

describe("a catalog", () => {
  it("kept up to date step by step has the same rows as one made from the bytes", async () => {
    const action = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({ do: fc.constant("note" as const), id: fc.nat(20), size: fc.nat(300) }),
      },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("leaf" as const), size: fc.nat(400) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("sync", "flush", "reopen", "other") }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 30 }), async (actions) => {
        const root = fresh();
        const open = () => openBook(root, { clock, packBytes: 2000, largeBytes: 350 });
        let [book, other] = [await open(), await open()];
        const catalog = openCatalog(root);
        let last: Digest[] = [];
        for (const step of actions) {
          if (step.do === "note")
            last = [putNote(book, { id: `n${step.id}`, family: "f", text: "x".repeat(step.size), to: last })];
          else if (step.do === "leaf") last.push(book.put(MEDIA_KIND, new Uint8Array(step.size)));
          else if (step.do === "flush") await book.flush();
          else if (step.do === "sync") await catalog.sync();
          else if (step.do === "other") [book, other] = [other, book];
          else {
            await book.close();
            book = await open();
          }
        }
        await Promise.all([book.flush(), other.flush()]);
        await catalog.sync();
        const kept = rowsOf(root);
        await catalog.rebuild();
        expect(rowsOf(root)).toEqual(kept);
        await Promise.all([book.close(), other.close()]);
        await catalog.sync();
        const closed = rowsOf(root);
        await catalog.rebuild();
        expect(rowsOf(root)).toEqual(closed);
        catalog.close();
      }),
      { numRuns: 30 },
    );
  });

  it("looks for an id in the index of ids, whatever else is asked: it takes as long in a large book as in a small one", () => {
    const root = fresh();
    mkdirSync(root);
    openCatalog(root).close();
    const db = openSqlite(join(root, "catalog.db"));
    const filters = [
      { id: "a" },
      { id: "a", kind: "k" },
      { id: "a", family: "f" },
      { id: "a", kind: "k", family: "f" },
    ];
    for (const filter of filters) {
      const { sql, values } = recordsQuery(filter);
      const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all<{ detail: string }>(...values);
      expect(plan.map(({ detail }) => detail).join()).toContain("INDEX records_by_id (id=?)");
    }
    db.close();
  });

  it("answers by kind, family, id, place and reference", async () => {
    const root = fresh();
    const book = await openBook(root, { clock, largeBytes: 2000 });
    const leaf = book.put(MEDIA_KIND, Uint8Array.of(1, 2, 3));
    const a = putNote(book, { id: "a", family: "one", text: "t", to: [leaf] });
    const b = putNote(book, { id: "b", family: "two", text: "x".repeat(3000), to: [leaf, a] });
    await book.close();
    const catalog = openCatalog(root);
    expect(await catalog.sync()).toEqual({
      blobs: 3,
      records: 2,
      packsRemoved: 0,
      damaged: 0,
      undescribed: 0,
    });
    expect(await catalog.sync()).toMatchObject({ blobs: 0, records: 0 });
    expect([...catalog.records()].map(({ id }) => id)).toEqual(["a", "b"]);
    expect([...catalog.records({ kind: NOTE, family: "two" })].map(({ id }) => id)).toEqual(["b"]);
    expect([...catalog.records({ id: "none" })]).toEqual([]);
    expect(catalog.record(a)).toEqual({
      digest: a,
      kind: NOTE,
      id: "a",
      family: "one",
      fields: { id: "a", family: "one", text: "t" },
    });
    expect(catalog.record(leaf)).toBeUndefined();
    expect(catalog.referencesOf(b).sort()).toEqual([leaf, a].sort());
    expect(catalog.referrersOf(leaf).sort()).toEqual([a, b].sort());
    for (const [digest, bytes] of [[leaf, Buffer.from([1, 2, 3])] as const]) {
      const { file, offset, length } = catalog.locate(digest)!;
      expect(readFileSync(join(root, file)).subarray(offset, offset + length)).toEqual(bytes);
    }
    expect(catalog.locate(b)!.file).toMatch(/^large\//);
    expect(catalog.totals().map(({ kind, blobs }) => [kind, blobs])).toEqual([
      [MEDIA_KIND, 1],
      [NOTE, 2],
    ]);
    catalog.close();
  });

  it("is made anew when the file is absent, damaged, or of another version", async () => {
    const root = fresh();
    const book = await openBook(root, { clock });
    for (let i = 0; i < 200; i++) putNote(book, { id: `n${i}`, text: "t", to: [] });
    await book.close();
    const synced = async () => {
      const catalog = openCatalog(root);
      await catalog.sync();
      const count = [...catalog.records()].length;
      catalog.close();
      return count;
    };
    expect(await synced()).toBe(200);
    const path = join(root, "catalog.db");
    rmSync(path);
    expect(await synced()).toBe(200);
    writeFileSync(path, "this is not a database".repeat(300));
    expect(await synced()).toBe(200);
    const db = openSqlite(path);
    db.exec("PRAGMA user_version = 99; DROP TABLE refs; CREATE TABLE strange (x)");
    db.close();
    expect(await synced()).toBe(200);
    // Overwrite pages in the middle: SQLite notices when it walks them.
    const bytes = readFileSync(path);
    bytes.fill(0xee, 4096);
    writeFileSync(path, bytes);
    const catalog = openCatalog(root);
    await catalog.rebuild();
    expect([...catalog.records()]).toHaveLength(200);
    catalog.close();
    expect(statSync(path).size).toBeGreaterThan(4096);
  });

  it("counts damage and blobs that are not what their kind says, and lists the rest", async () => {
    const root = fresh();
    const book = await openBook(root, { clock });
    putNote(book, { id: "a", text: "t", to: [] });
    book.put(NOTE, Buffer.from("not json"));
    putNote(book, { id: "nul \0", text: "t", to: [] });
    putNote(book, { id: "b", text: "second text", to: [] });
    putNote(book, { id: "c", text: "t", to: [] });
    await book.close();
    const catalog = openCatalog(root);
    expect(await catalog.sync()).toMatchObject({ blobs: 5, records: 3, undescribed: 2, damaged: 0 });
    const file = join(root, catalog.locate([...catalog.records({ id: "b" })][0]!.digest)!.file);
    const bytes = readFileSync(file);
    bytes[bytes.indexOf("second text")] = 0;
    writeFileSync(file, bytes);
    appendFileSync(file, "rest");
    expect(await catalog.rebuild()).toMatchObject({ blobs: 4, records: 2, undescribed: 2, damaged: 2 });
    expect([...catalog.records()].map(({ id }) => id)).toEqual(["a", "c"]);
    catalog.close();
  });

  it("knows the names of rollouts that are there and of those that were erased, as soon as any connection lists them", async () => {
    const root = fresh();
    const book = await openBook(root, { clock });
    const [catalog, other] = [openCatalog(root), openCatalog(root)];
    const put = async (kind: string, record: object) => {
      book.put(kind, Buffer.from(JSON.stringify(record)));
      await book.flush();
      await other.sync();
    };
    const known = () => ["held", "erased", "both", "task"].map((id) => catalog.rolloutNamed(id));
    const [free, held, erased] = [
      { isHeld: false, isErased: false },
      { isHeld: true, isErased: false },
      { isHeld: false, isErased: true },
    ];
    await put(NOTE, { id: "task" });
    expect(known()).toEqual([free, free, free, free]);
    const rest = {
      ...{ environment: "e@1", task: { id: "t" }, dataSource: "real", ending: { kind: "terminal" } },
      ...{ streams: [{ family: "f", level: "step", steps: [] }], calls: [], scores: [] },
    };
    for (const rolloutId of ["held", "both"]) await put(RolloutContent.kind, { rolloutId, ...rest });
    expect(known()).toEqual([held, free, held, free]);
    const gone = { records: [], blobs: [], reason: "", by: "owner", atMs: 0 };
    await put(Tombstone.kind, { subjects: [{ rollout: "erased", content: "" }], ...gone });
    expect(known()).toEqual([held, erased, held, free]);
    await put(Tombstone.kind, { subjects: [{ rollout: "both", content: "" }], ...gone });
    expect(known()).toEqual([held, erased, { isHeld: true, isErased: true }, free]);
    catalog.close();
    other.close();
    await book.close();
  });

  it("never looks empty to another connection, neither while it is rebuilt nor while it follows gc", async () => {
    const root = fresh();
    for (let session = 0; session < 9; session++) {
      const book = await openBook(root, { clock });
      for (let i = 0; i < 40; i++) putNote(book, { id: `${session}-${i}`, text: "x".repeat(9000), to: [] });
      await book.close();
    }
    const [catalog, other] = [openCatalog(root), openCatalog(root)];
    await catalog.sync();
    const least = async (work: Promise<unknown>): Promise<number> => {
      let [fewest, done] = [360, false];
      const ended = work.finally(() => {
        done = true;
      });
      while (!done) {
        fewest = Math.min(fewest, notesIn(other));
        await new Promise(setImmediate);
      }
      await ended;
      return fewest;
    };
    expect(await least(catalog.rebuild())).toBe(360);
    expect((await collectGarbage(root, { clock })).packsReplaced).toBe(9);
    expect(await least(catalog.sync())).toBe(360);
    expect([notesIn(catalog), catalog.lost()]).toEqual([360, []]);
    catalog.close();
    other.close();
  });

  it("that another process rebuilds while it is brought up to date misses nothing", async () => {
    const root = fresh();
    // A pack that gc will remove: in a new catalog the other packs have other numbers.
    const first = await openBook(root, { clock: manualClock(1_600_000_000_000) });
    first.put("rollbook.message.v1", Buffer.from("nobody needs it"));
    await first.close();
    const book = await openBook(root, { clock });
    let count = 0;
    const write = async () => {
      for (let i = 0; i < 5; i++) putNote(book, { id: `n-${count++}`, text: "", to: [] });
      await book.flush();
    };
    const catalog = openCatalog(root);
    await write();
    await catalog.sync();
    await collectGarbage(root, { clock });
    const made = openCatalogDatabase(join(root, "made.db"));
    await syncCatalog(made, bookPaths(root));
    made.close();
    await write();
    await catalog.sync();
    await write();
    const syncing = catalog.sync();
    // Another process read the packs a moment ago and replaces the rows now.
    const other = openCatalogDatabase(join(root, "catalog.db"));
    replaceRows(other, join(root, "made.db"));
    other.close();
    await syncing;
    expect(notesIn(catalog)).toBe(count);
    await book.close();
    await catalog.sync();
    expect(notesIn(catalog)).toBe(count);
    expect(catalog.lost()).toEqual([]);
    const kept = rowsOf(root);
    await catalog.rebuild();
    expect(kept).toEqual(rowsOf(root));
    catalog.close();
  });

  it("that is rebuilt while another process brings it up to date loses nothing that was listed", async () => {
    const root = fresh();
    // The pack of this session is the first that a rebuild reads.
    const late = await openBook(root, { clock: manualClock(1_500_000_000_000) });
    for (let session = 0; session < 60; session++) {
      const book = await openBook(root, { clock });
      putNote(book, { id: `n-${session}`, text: "", to: [] });
      await book.close();
    }
    const [catalog, other] = [openCatalog(root), openCatalog(root)];
    await other.sync();
    const listed: string[] = [];
    let missing: string[] | undefined;
    const rebuilding = catalog.rebuild().then(() => {
      const left = new Set([...catalog.records({ kind: NOTE })].map(({ id }) => id));
      missing = listed.filter((id) => !left.has(id));
    });
    for (let i = 0; missing === undefined && i < 100; i++) {
      putNote(late, { id: `late-${i}`, text: "", to: [] });
      await late.flush();
      await other.sync();
      listed.push(`late-${i}`);
    }
    await rebuilding;
    expect([missing, listed.length > 1]).toEqual([[], true]);
    await late.close();
    catalog.close();
    other.close();
  });

  it("does not forget a pack that came after it had listed them, and that another process has read", async () => {
    const root = fresh();
    const late = await openBook(root, { clock: manualClock(1_500_000_000_000) });
    for (let session = 0; session < 40; session++) {
      const book = await openBook(root, { clock });
      putNote(book, { id: `n-${session}`, text: "", to: [] });
      await book.close();
    }
    const [catalog, other] = [openCatalog(root), openCatalog(root)];
    const syncing = catalog.sync();
    putNote(late, { id: "late", text: "", to: [] });
    await late.flush();
    await other.sync();
    await syncing;
    expect([notesIn(other), other.lost()]).toEqual([41, []]);
    await late.close();
    catalog.close();
    other.close();
  });

  it("is rebuilt in a copy of a book without its empty folders", async () => {
    const [root, copy] = [fresh(), fresh()];
    const book = await openBook(root, { clock });
    putNote(book, { id: "a", text: "", to: [] });
    await book.close();
    for (const name of ["book.json", "packs"])
      cpSync(join(root, name), join(copy, name), { recursive: true });
    const catalog = openCatalog(copy);
    await catalog.rebuild();
    expect(notesIn(catalog)).toBe(1);
    catalog.close();
  });

  it("waits for a writer that holds the database for longer than SQLite waits", async () => {
    const root = fresh();
    const book = await openBook(root, { clock });
    await book.put(MEDIA_KIND, new TextEncoder().encode("held"));
    await book.close();
    const catalog = openCatalog(root);
    const other = openSqlite(bookPaths(root).catalog);
    other.exec("BEGIN IMMEDIATE");
    setTimeout(() => other.exec("COMMIT"), 1500);
    expect((await catalog.sync()).blobs).toBe(1);
    other.close();
    catalog.close();
  });

  it("waits for no writer where nothing is new", async () => {
    const root = fresh();
    const book = await openBook(root, { clock });
    book.put(MEDIA_KIND, new TextEncoder().encode("listed"));
    await book.flush();
    const catalog = openCatalog(root);
    expect((await catalog.sync()).blobs).toBe(1);
    const other = openSqlite(bookPaths(root).catalog);
    other.exec("BEGIN IMMEDIATE");
    expect((await catalog.sync()).blobs).toBe(0); // would wait forever
    other.exec("COMMIT");
    other.close();
    catalog.close();
    await book.close();
  });
});
