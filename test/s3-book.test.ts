/** A book in a bucket keeps the contract of a store, and several machines can write to it at once. Each working copy
 *  stands for a machine. */
import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DeleteObjectsCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import * as s3Server from "../scripts/setup/s3-server.mjs";
import { systemClock } from "../src/base/index.ts";
import { type Book, checkOut, openBook, tryLock } from "../src/store/index.ts";
import { describeBlobStore } from "./contracts/blob-store.ts";
import { Cli } from "./support/cli.ts";
import { describeNeeding } from "./support/needs.ts";
import { type S3Server, startS3 } from "./support/s3-server.ts";

let server: S3Server;
let folder: string;
let client: S3Client;
let count = 0;

const newBook = () => `s3://${server.bucket}/book-${++count}`;
/** A new machine: a working copy that no other machine shares. */
async function machine(url: string): Promise<string> {
  const root = join(folder, `machine-${++count}`);
  await checkOut(url, root);
  return root;
}
const open = (root: string, options: { packBytes?: number; largeBytes?: number } = {}): Promise<Book> =>
  openBook(root, { clock: systemClock, ...options });
const bytesOf = (text: string) => new Uint8Array(Buffer.from(text));
async function keysOf(url: string): Promise<{ key: string; bytes: number }[]> {
  const prefix = `${url.slice(`s3://${server.bucket}/`.length)}/`;
  const { Contents = [] } = await client.send(
    new ListObjectsV2Command({ Bucket: server.bucket, Prefix: prefix }),
  );
  return Contents.map(({ Key = "", Size = 0 }) => ({ key: Key.slice(prefix.length), bytes: Size }));
}

await describeNeeding(s3Server, "on S3", () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "rollbook-s3-copy-"));
    server = await startS3();
    for (const [name, value] of Object.entries(server.env)) vi.stubEnv(name, value);
    client = new S3Client({ endpoint: server.endpoint, region: "us-east-1", forcePathStyle: true });
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const inBucket = async () => {
    const root = await machine(newBook());
    return { persistent: true, open: () => open(root) };
  };
  describeBlobStore("a book in a bucket", inBucket, { sequences: 10 });

  describe("a book in a bucket", () => {
    it("shows on another machine what one has flushed, while both go on writing", async () => {
      const url = newBook();
      const a = await open(await machine(url));
      const b = await open(await machine(url));
      expect(b.id).toBe(a.id);
      const first = a.put("test.kind", bytesOf("from a"));
      await a.flush();
      expect((await b.get(first))?.bytes).toEqual(bytesOf("from a"));
      const second = b.put("test.kind", bytesOf("from b"));
      await b.flush();
      const third = a.put("test.kind", bytesOf("more from a"));
      await a.flush();
      expect(await a.has(second)).toBe(true);
      expect(await b.has(third)).toBe(true);
      await a.close();
      await b.close();
      expect((await keysOf(url)).map(({ key }) => key.split("/")[0])).toEqual([
        "book.json",
        "packs",
        "packs",
      ]);
    });

    it("is whole on a machine that never saw it, large blobs included", async () => {
      const url = newBook();
      const a = await open(await machine(url), { largeBytes: 1000, packBytes: 4000 });
      const digests = Array.from({ length: 60 }, (_, i) =>
        a.put("test.kind", new Uint8Array(20 * i + 1).fill(i)),
      );
      await a.flush();
      await a.close();
      const b = await openBook(await machine(url), { clock: systemClock, mode: "read" });
      for (const [i, digest] of digests.entries())
        expect((await b.get(digest))?.bytes).toEqual(new Uint8Array(20 * i + 1).fill(i));
      for await (const item of b.scan()) expect(item.type).not.toBe("damage");
      await b.close();
    });

    it("keeps what a machine flushed before it died, and leaves a machine that lives alone", async () => {
      const url = newBook();
      const dead = await machine(url);
      const a = await open(dead);
      const kept = a.put("test.kind", bytesOf("flushed"));
      await a.flush();
      // The machine and its disk are gone. Its last sign of life is recent, so no other machine seals its pack yet.
      const b = await open(await machine(url));
      expect((await b.get(kept))?.bytes).toEqual(bytesOf("flushed"));
      await b.close();
      expect((await keysOf(url)).some(({ key }) => key.startsWith("parts/"))).toBe(true);
      await silence(url);
      const c = await open(await machine(url));
      expect(c.recovered).toMatchObject([{ blobs: 1, damage: [] }]);
      expect((await c.get(kept))?.bytes).toEqual(bytesOf("flushed"));
      await c.close();
      expect((await keysOf(url)).filter(({ key, bytes }) => key.startsWith("parts/") && bytes > 0)).toEqual(
        [],
      );
      // The machine was alive after all. It must stop, because no reader would see the blobs that it adds.
      a.put("test.kind", bytesOf("too late"));
      await expect(a.flush()).rejects.toThrow("took this session for dead");
      await a.close();
    });

    it("shows what a machine wrote just before it sealed its pack, to one that had read the pack before", async () => {
      const url = newBook();
      const a = await open(await machine(url));
      const b = await open(await machine(url));
      const first = a.put("test.kind", bytesOf("first"));
      await a.flush();
      expect(await b.has(first)).toBe(true);
      const last = a.put("test.kind", bytesOf("last"));
      await a.close();
      expect((await b.get(last))?.bytes).toEqual(bytesOf("last"));
      expect((await b.get(first))?.bytes).toEqual(bytesOf("first"));
      await b.close();
    });

    it("has in the bucket what was flushed while packs were full", async () => {
      const url = newBook();
      const a = await open(await machine(url), { packBytes: 3000 });
      const flushed: Promise<void>[] = [];
      const digests = [];
      for (let i = 0; i < 60; i++) {
        digests.push(a.put("test.kind", new Uint8Array(150).fill(i)));
        flushed.push(a.flush());
        if (i % 3 === 0) await sleep(5);
      }
      await Promise.all(flushed);
      const b = await openBook(await machine(url), { clock: systemClock, mode: "read" });
      for (const digest of digests) expect(await b.has(digest)).toBe(true);
      await b.close();
      await a.close();
    });

    it("keeps what was acknowledged between the look of a recovering machine and its recovery", async () => {
      const url = newBook();
      const a = await open(await machine(url), { largeBytes: 2000 });
      a.put("test.kind", bytesOf("seen"));
      await a.flush();
      const root = await machine(url);
      // A long download: the list of parts is outdated when it is used.
      const opened = await during(
        root,
        () => open(root),
        async () => {
          a.put("test.kind", bytesOf("after the list"));
          a.put("test.kind", new Uint8Array(3000));
          await a.flush();
          await silence(url);
        },
      );
      expect(opened.recovered).toMatchObject([{ blobs: 3, tornBytes: 0 }]);
      await opened.close();
      const other = await openBook(await machine(url), { clock: systemClock, mode: "read" });
      let blobs = 0;
      for await (const item of other.scan()) if (item.type === "blob" || item.type === "large") blobs++;
      expect(blobs).toBe(3);
      await other.close();
    });

    it("shows what was flushed, though the pack is sealed while a machine brings it down", async () => {
      const url = newBook();
      const a = await open(await machine(url));
      const b = await openBook(await machine(url), { clock: systemClock, mode: "read" });
      const digest = a.put("test.kind", bytesOf("flushed"));
      await a.flush();
      expect(
        await during(
          b.root,
          () => b.has(digest),
          () => a.close(),
        ),
      ).toBe(true);
      await b.close();
    });

    it("completes a part that a crash left torn in the working copy", async () => {
      const url = newBook();
      const a = await open(await machine(url));
      a.put("test.kind", bytesOf("first"));
      await a.flush();
      const second = a.put("test.kind", new Uint8Array(500));
      await a.flush();
      const root = await machine(url);
      const path = join(root, "packs", readdirSync(join(root, "packs"))[0]!);
      truncateSync(path, statSync(path).size - 100);
      const b = await openBook(root, { clock: systemClock, mode: "read" });
      expect(await b.has(second)).toBe(true);
      await b.close();
      await a.close();
    });

    it("is brought down by several processes of a machine at once", async () => {
      const url = newBook();
      const a = await open(await machine(url), { largeBytes: 1000 });
      a.put("test.kind", new Uint8Array(2000));
      const digest = a.put("test.kind", bytesOf("there"));
      await a.close();
      const root = join(folder, `machine-${++count}`);
      await Promise.all([checkOut(url, root), checkOut(url, root), checkOut(url, root)]);
      const b = await openBook(root, { clock: systemClock, mode: "read" });
      expect(await b.has(digest)).toBe(true);
      await b.close();
      expect(readdirSync(join(root, "tmp"))).toEqual([]);
    });

    it("lets a session go on whose full pack another process of its machine pushed", async () => {
      const url = newBook();
      const root = await machine(url);
      const a = await open(root, { packBytes: 500 });
      const digests = Array.from({ length: 10 }, (_, i) => a.put("test.kind", new Uint8Array(200).fill(i)));
      await (await open(root)).close();
      await a.flush();
      await a.close();
      const b = await openBook(await machine(url), { clock: systemClock, mode: "read" });
      for (const digest of digests) expect(await b.has(digest)).toBe(true);
      await b.close();
    });

    it("acknowledges nothing in a pack that another machine sealed, not even once it is full", async () => {
      const url = newBook();
      const a = await open(await machine(url), { packBytes: 1500 });
      a.put("test.kind", bytesOf("flushed"));
      await a.flush();
      await silence(url);
      await (await open(await machine(url))).close();
      for (let i = 0; i < 10; i++) a.put("test.kind", new Uint8Array(300).fill(i));
      await expect(a.flush()).rejects.toThrow("took this session for dead");
      await a.close();
    });

    it("pushes what a crash of its own machine kept from going up", async () => {
      const url = newBook();
      const root = await machine(url);
      const a = await open(root);
      const digest = a.put("test.kind", bytesOf("sealed"));
      await a.close();
      await removeAll(url, "packs/");
      const again = await open(root);
      await again.close();
      const other = await openBook(await machine(url), { clock: systemClock, mode: "read" });
      expect((await other.get(digest))?.bytes).toEqual(bytesOf("sealed"));
      await other.close();
    });

    it("refuses an object that is not what was sealed, and takes nothing of it over", async () => {
      const url = newBook();
      const a = await open(await machine(url));
      a.put("test.kind", bytesOf("original"));
      await a.close();
      const [pack] = (await keysOf(url)).filter(({ key }) => key.startsWith("packs/"));
      const Key = `${url.slice(`s3://${server.bucket}/`.length)}/${pack!.key}`;
      await client.send(
        new PutObjectCommand({ Bucket: server.bucket, Key, Body: Buffer.alloc(pack!.bytes, 1) }),
      );
      const root = join(folder, `machine-${++count}`);
      await expect(checkOut(url, root)).rejects.toMatchObject({ code: "damaged-object" });
      expect(readdirSync(join(root, "packs"))).toEqual([]);
    });

    it("is worked on by every command that takes --book, on any machine", async () => {
      const book = newBook();
      const [here, there] = [new Cli(), new Cli()];
      const on = (cli: Cli, words: string) =>
        cli.run(`${words} --book ${book}`, "", { ...server.env, ROLLBOOK_CACHE: join(cli.folder, "cache") });
      expect(await on(here, "init")).toMatchObject({ code: 0 });
      expect(await on(here, "artifact import examples/two-rollouts.jsonl")).toMatchObject({ code: 0 });
      expect(await on(there, "artifact ls --json")).toMatchObject({
        code: 0,
        out: expect.stringContaining('"rolloutId":"run-1"'),
      });
      expect(await on(there, "verify")).toMatchObject({
        code: 0,
        out: expect.stringContaining("self-consistent: yes"),
      });
      for (const words of ["gc --dry-run", "gc", "artifact erase run-1 --reason asked --yes", "gc"])
        expect([words, await on(there, words)]).toMatchObject([words, { code: 0 }]);
      for (const cli of [here, there]) {
        expect((await on(cli, "artifact ls --json")).out).not.toContain('"rolloutId":"run-1"');
        expect((await on(cli, "artifact ls --json")).out).toContain('"rolloutId":"run-0"');
      }
      expect(await on(there, "verify")).toMatchObject({ code: 0 });
    });

    it("is one book when two machines make it at the same time", async () => {
      const url = newBook();
      const [a, b] = await Promise.all([machine(url), machine(url)]);
      const books = await Promise.all([open(a), open(b)]);
      expect(books[0]!.id).toBe(books[1]!.id);
      await Promise.all(books.map((book) => book.close()));
    });

    it.each([
      ["s3://nosuchbucket-rollbook/x", "Create the bucket"],
      ["s3://UPPER/x", "is not s3://bucket"],
    ])("says what is wrong with %s", async (url, message) => {
      await expect(checkOut(url, join(folder, `machine-${++count}`))).rejects.toThrow(message);
    });
  });
});

/** Result of `work` if `meanwhile` runs after `work` has listed the bucket and before it downloads anything. */
async function during<T>(root: string, work: () => Promise<T>, meanwhile: () => Promise<void>): Promise<T> {
  const lock = tryLock(join(root, "locks", "remote.lock"))!;
  const result = work();
  await sleep(500);
  await meanwhile();
  lock.release();
  return await result;
}

/** Simulates a minute without a sign of life: removes the session objects. */
async function silence(url: string): Promise<void> {
  await removeAll(url, "sessions/");
}

async function removeAll(url: string, part: string): Promise<void> {
  const prefix = url.slice(`s3://${server.bucket}/`.length);
  const Objects = (await keysOf(url))
    .filter(({ key }) => key.startsWith(part))
    .map(({ key }) => ({ Key: `${prefix}/${key}` }));
  await client.send(new DeleteObjectsCommand({ Bucket: server.bucket, Delete: { Objects } }));
}
