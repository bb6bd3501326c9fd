import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeBlobStore } from "../../test/contracts/blob-store.ts";
import { mapBucket } from "../../test/support/map-bucket.ts";
import { type Digest, systemClock } from "../base/index.ts";
import { openBook } from "./book.ts";
import { openCatalog } from "./catalog/index.ts";
import { bookPaths } from "./pack/index.ts";
import { RemoteBook } from "./remote/remote-book.ts";
import { Session } from "./session.ts";

let scratch = "";
let made = 0;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "rollbook-book-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const fresh = () => join(scratch, String(made++));
const clock = systemClock;

describeBlobStore("a book directory", async () => {
  const root = fresh();
  return { open: () => openBook(root, { clock }), persistent: true };
});

// Small limits, so that the property covers large files and rolled-over packs.
describeBlobStore("a book directory with tiny packs", async () => {
  const root = fresh();
  return { open: () => openBook(root, { clock, packBytes: 8192, largeBytes: 2000 }), persistent: true };
});

describe("a book directory", () => {
  it("holds only book.json and empty directories after a session that put nothing", async () => {
    const root = fresh();
    await (await openBook(root, { clock })).close();
    expect(readdirSync(root).sort()).toEqual(["book.json", "large", "locks", "packs", "tmp"]);
    expect(readdirSync(join(root, "packs"))).toEqual([]);
    expect(readdirSync(join(root, "locks"))).toEqual(["book.lock"]);
  });

  it("has no lock and no file of a session whose bucket refuses it", async () => {
    const root = fresh();
    await (await openBook(root, { clock })).close();
    const refuse = () => Promise.reject(new Error("the bucket is gone"));
    const remote = new RemoteBook({ ...mapBucket(new Map()), replace: refuse }, root);
    const options = { clock, packBytes: 8192, largeBytes: 2000, remote };
    await expect(Session.begin(bookPaths(root), options)).rejects.toThrow("the bucket is gone");
    expect(readdirSync(join(root, "locks"))).toEqual(["book.lock"]);
    expect(readdirSync(join(root, "remote"))).toEqual([]);
  });

  it("reads single blobs where a catalog says they are, and finds those that it lists wrongly", async () => {
    const root = fresh();
    const writer = await openBook(root, { clock });
    const digests = [1, 2, 3].map((n) => writer.put("test.kind", new Uint8Array(100 * n).fill(n)));
    await writer.close();
    const catalog = openCatalog(root);
    await catalog.sync();
    const asked: string[] = [];
    const places = new Map(digests.map((digest) => [digest, catalog.entryOf(digest)!]));
    catalog.close();
    const [first, second, third] = digests as [Digest, Digest, Digest];
    const reader = await openBook(root, { clock, mode: "read" });
    reader.lookUpBy((digest) => {
      asked.push(digest);
      return places.get(digest === third ? first : digest);
    });
    for (const [i, digest] of [first, second, third].entries())
      expect((await reader.get(digest))?.bytes).toEqual(new Uint8Array(100 * (i + 1)).fill(i + 1));
    // The wrong place made the reader index the packs, so it no longer asks the lookup.
    await reader.get(first);
    expect(asked).toEqual([first, second, third]);
    await reader.close();
  });

  it("gives what was put through it by `getOwn`, and what another writer put by `get` alone", async () => {
    const root = fresh();
    const [one, other] = [await openBook(root, { clock }), await openBook(root, { clock })];
    const [own, foreign] = [one.put("test.kind", Uint8Array.of(1)), other.put("test.kind", Uint8Array.of(2))];
    await other.flush();
    expect((await one.getOwn(own))?.bytes).toEqual(Uint8Array.of(1));
    expect([await one.getOwn(foreign), (await one.get(foreign))?.bytes]).toEqual([
      undefined,
      Uint8Array.of(2),
    ]);
    // The read made the blob durable: another process sees it.
    expect((await other.get(own))?.bytes).toEqual(Uint8Array.of(1));
    await Promise.all([one.close(), other.close()]);
  });

  it("refuses to go on with a scan of which a part was left out", async () => {
    const book = await openBook(fresh(), { clock });
    for (let i = 0; i < 5; i++) book.put("test.kind", Uint8Array.of(i));
    const left = async () => {
      for await (const run of book.scanRuns()) for (const _ of run) break;
    };
    await expect(left()).rejects.toThrow("a run of a scan was left before its end");
    // Ending the scan early is not an error.
    for await (const _ of book.scanRuns()) break;
    await book.close();
  });

  it("sees what another open book writes, as soon as it is flushed", async () => {
    const root = fresh();
    const [writer, reader] = [await openBook(root, { clock }), await openBook(root, { clock, mode: "read" })];
    for (let i = 0; i < 20; i++) {
      const digest = writer.put("test.kind", Uint8Array.of(i));
      await writer.flush();
      expect(await reader.get(digest)).toEqual({ kind: "test.kind", bytes: Uint8Array.of(i) });
    }
    await writer.close();
    await reader.close();
  });

  it("refuses to write a book opened to read, and a directory that is no book", async () => {
    const root = fresh();
    await expect(openBook(root, { clock, mode: "read" })).rejects.toMatchObject({ code: "no-book" });
    await (await openBook(root, { clock })).close();
    const reader = await openBook(root, { clock, mode: "read" });
    expect(() => reader.put("a", new Uint8Array(1))).toThrowError(
      expect.objectContaining({ code: "read-only" }),
    );
    await reader.close();
  });
});

describe("the id of a book", () => {
  it("is one for all who open it, also at once and to read; another book has another", async () => {
    const root = fresh();
    const opened = await Promise.all(Array.from({ length: 8 }, () => openBook(root, { clock })));
    opened.push(await openBook(root, { clock, mode: "read" }), await openBook(fresh(), { clock }));
    const ids = opened.map(({ id }) => id);
    expect(ids.slice(0, 9)).toEqual(Array(9).fill(ids[0]));
    expect(ids[9]).not.toBe(ids[0]);
    for (const book of opened) await book.close();
  });

  it("follows from book.json where that names none, and opening such a book changes no byte of it", async () => {
    const root = fresh();
    const file = join(root, "book.json");
    // Written by hand in the form of books that had no ids.
    const core = '{"createdAt":"2025-01-02T03:04:05.006Z",';
    const hex = createHash("sha256")
      .update(`rollbook.book.v1\0${core}"schema":"rollbook.book.v1"}`)
      .digest("hex");
    const text = `${core}"digest":"sha256:${hex}","schema":"rollbook.book.v1"}`;
    for (const directory of ["packs", "large", "locks", "tmp"])
      mkdirSync(join(root, directory), { recursive: true });
    writeFileSync(file, text);
    for (const mode of ["read", "write", "read"] as const) {
      const book = await openBook(root, { clock, mode });
      expect(book.id).toBe(`book-${hex.slice(0, 32)}`);
      await book.close();
    }
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  it("that is no id is damage", async () => {
    const root = fresh();
    await (await openBook(root, { clock })).close();
    const { digest: _, ...book } = JSON.parse(readFileSync(join(root, "book.json"), "utf8"));
    const core = `{"createdAt":"${book.createdAt}",`;
    const rest = '"id":"a/b","schema":"rollbook.book.v1"}';
    const hex = createHash("sha256").update(`rollbook.book.v1\0${core}${rest}`).digest("hex");
    writeFileSync(join(root, "book.json"), `${core}"digest":"sha256:${hex}",${rest}`);
    await expect(openBook(root, { clock })).rejects.toMatchObject({ code: "bad-book" });
  });
});
