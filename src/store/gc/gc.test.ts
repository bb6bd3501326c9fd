import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compiledModules } from "../../../bench/support/build.ts";
import { checkBook, endOf, startProcess } from "../../../bench/support/store-crash.ts";
import { scanAll } from "../../../test/contracts/blob-store.ts";
import { type Digest, manualClock, systemClock } from "../../base/index.ts";
import { MEDIA_KIND } from "../../contract/rollout/call.ts";
import { RolloutContent } from "../../contract/rollout/rollout.ts";
import { Task } from "../../contract/task/task.ts";
import { type Book, openBook } from "../book.ts";
import { openCatalog } from "../catalog/catalog.ts";
import { tryLock } from "../disk/locks.ts";
import { collectGarbage, type GcOptions } from "./gc.ts";

let scratch = "";
let made = 0;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "rollbook-gc-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const fresh = () => join(scratch, String(made++));
const clock = manualClock(1_700_000_000_000);

/** Kinds that gc knows. gc reads only the digests in a record, so tests may write other fields freely. */
const [ROOT, NODE, LEAF] = [Task.kind, RolloutContent.kind, MEDIA_KIND];
/** A kind of a newer version. */
const UNKNOWN = "rollbook.tomorrow.v1";
const childrenOf = (bytes: Uint8Array): Digest[] => JSON.parse(Buffer.from(bytes).toString()).children;
const putNode = (book: Book, kind: string, children: readonly Digest[], more: object = {}) =>
  book.put(kind, Buffer.from(JSON.stringify({ children, ...more })));
const gc = (root: string, options: Partial<GcOptions> = {}) => collectGarbage(root, { clock, ...options });
const digestsIn = async (root: string): Promise<Digest[]> => {
  const book = await openBook(root, { clock, mode: "read" });
  const found = (await scanAll(book)).map(({ digest }) => digest);
  await book.close();
  return found;
};

/** Changes a byte of the payload that the tests put. */
function spoil(file: string): void {
  const bytes = readFileSync(file);
  bytes[bytes.indexOf("some bytes")] = 0;
  writeFileSync(file, bytes);
}

describe("gc", () => {
  it("leaves exactly one copy of what roots lead to, through any graph, and says so beforehand", async () => {
    const blob = fc.record({
      kind: fc.constantFrom(ROOT, NODE, NODE, LEAF, UNKNOWN),
      links: fc.array(fc.nat(1000), { maxLength: 4 }),
      size: fc.constantFrom(1, 50, 900),
      close: fc.boolean(),
      again: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(blob, { minLength: 1, maxLength: 25 }), async (blobs) => {
        const root = fresh();
        const open = () => openBook(root, { clock, packBytes: 1500, largeBytes: 600 });
        let book = await open();
        const all: { digest: Digest; children: Digest[]; isRoot: boolean }[] = [];
        for (const [i, { kind, links, size, close, again }] of blobs.entries()) {
          const children =
            kind === LEAF ? [] : links.flatMap((n) => all[n % (all.length || 1)]?.digest ?? []);
          const put = () =>
            kind === LEAF
              ? book.put(kind, new Uint8Array(size).fill(i))
              : putNode(book, kind, children, { i, pad: "x".repeat(size) });
          all.push({ digest: put(), children, isRoot: kind === ROOT || kind === UNKNOWN });
          if (close || again) {
            await book.close();
            book = await open();
          }
          if (again) put();
        }
        await book.close();
        const reachable = new Set<Digest>();
        const visit = (digest: Digest): void => {
          if (reachable.has(digest)) return;
          reachable.add(digest);
          for (const child of all.find((each) => each.digest === digest)!.children) visit(child);
        };
        for (const { digest, isRoot } of all) if (isRoot) visit(digest);
        const before = await digestsIn(root);
        const plan = await gc(root, { dryRun: true });
        expect(await digestsIn(root)).toEqual(before);
        const report = await gc(root);
        expect({ ...report, dryRun: true }).toEqual(plan);
        const after = await digestsIn(root);
        expect([...after].sort()).toEqual([...reachable].sort());
        expect(report).toMatchObject({
          blobsKept: reachable.size,
          blobsRemoved: before.filter((digest) => !reachable.has(digest)).length,
          copiesRemoved: before.filter((digest) => reachable.has(digest)).length - reachable.size,
        });
        const large = readdirSync(join(root, "large"));
        expect(large.length).toBe((await largeIn(root)).length);
        expect(await gc(root)).toMatchObject({ blobsRemoved: 0, copiesRemoved: 0, bytesFreed: 0 });
      }),
      { numRuns: 25 },
    );
  });

  it("keeps a kind it does not know, and every blob whose digest stands anywhere in it", async () => {
    const root = fresh();
    const book = await openBook(root, { clock });
    const [value, key, inText, bare, behind, garbage] = [1, 2, 3, 4, 5, 6].map((n) =>
      book.put(LEAF, Uint8Array.of(n)),
    ) as [Digest, Digest, Digest, Digest, Digest, Digest];
    const node = putNode(book, NODE, [behind]);
    const text = JSON.stringify({
      value,
      map: { [key]: 1 },
      note: `see ${inText}, and ${node}.`,
      hex: bare.slice("sha256:".length).toUpperCase(),
    });
    const unknown = book.put(UNKNOWN, Buffer.from(text.replace("sha256:", "sha25\\u0036:")));
    await book.close();
    const report = await gc(root);
    expect(report).toMatchObject({ blobsRemoved: 1, unknownKinds: [UNKNOWN], keepsAll: false });
    const left = await digestsIn(root);
    expect(left.sort()).toEqual([value, key, inText, bare, behind, node, unknown].sort());
    expect(left).not.toContain(garbage);
  });

  it("removes nothing but copies while a blob of an unknown kind is not JSON", async () => {
    const root = fresh();
    for (let i = 0; i < 2; i++) {
      const book = await openBook(root, { clock });
      book.put(LEAF, Buffer.from("nothing refers to this"));
      if (i === 0) book.put(UNKNOWN, Uint8Array.of(0xa1, 0x61, 0x61, 0x01)); // CBOR
      await book.close();
    }
    const report = await gc(root);
    expect(report).toMatchObject({ blobsRemoved: 0, copiesRemoved: 1, keepsAll: true, blobsKept: 2 });
    expect(await digestsIn(root)).toHaveLength(2);
  });

  it("does not touch what a living writer has put, nor what it will refer to in its own session", async () => {
    const root = fresh();
    const writer = await openBook(root, { clock, packBytes: 300, largeBytes: 100 });
    const child = writer.put(LEAF, new Uint8Array(50));
    const large = writer.put(LEAF, new Uint8Array(200));
    await writer.flush();
    for (let i = 0; i < 5; i++) writer.put(LEAF, new Uint8Array(90).fill(i));
    expect(readdirSync(join(root, "packs")).filter((name) => name.endsWith(".pack"))).not.toEqual([]);
    expect(await gc(root)).toMatchObject({ blobsRemoved: 0, packsReplaced: 0 });
    expect(writer.put(LEAF, new Uint8Array(50))).toBe(child);
    const node = putNode(writer, ROOT, [child, large]);
    await writer.close();
    expect(await gc(root)).toMatchObject({ blobsKept: 3, blobsRemoved: 5 });
    expect((await digestsIn(root)).sort()).toEqual([child, large, node].sort());
  });

  it("moves blobs under open readers and catalogs without their noticing", async () => {
    const root = fresh();
    const writer = await openBook(root, { clock });
    const leaves = Array.from({ length: 20 }, (_, i) => writer.put(LEAF, Uint8Array.of(i)));
    const node = putNode(writer, ROOT, leaves.slice(0, 10));
    await writer.close();
    const reader = await openBook(root, { clock, mode: "read" });
    const catalog = openCatalog(root);
    await catalog.sync();
    expect(await reader.has(leaves[19]!)).toBe(true);
    await gc(root);
    expect(await reader.has(leaves[19]!)).toBe(false);
    expect(await reader.get(leaves[19]!)).toBeUndefined();
    for (const digest of [node, ...leaves.slice(0, 10)]) expect(await reader.get(digest)).toBeDefined();
    expect(await catalog.sync()).toMatchObject({ packsRemoved: 1, blobs: 11 });
    expect(catalog.locate(leaves[19]!)).toBeUndefined();
    catalog.close();
    await reader.close();
  });

  it.each([
    ["small", 0, 20],
    ["small", 1, 20],
    ["large", 0, 2000],
    ["large", 1, 2000],
  ] as const)(
    "removes the damaged copy of a %s blob and keeps the whole one, copy %i",
    async (_, damaged, size) => {
      const root = fresh();
      const content = Buffer.from("some bytes ".padEnd(size, "."));
      let leaf: Digest | undefined;
      for (const at of [1, 2]) {
        const book = await openBook(root, { clock: manualClock(1_700_000_000_000 + at), largeBytes: 600 });
        leaf = book.put(LEAF, content);
        putNode(book, ROOT, [leaf], { at });
        await book.close();
      }
      const folder = join(root, size > 600 ? "large" : "packs");
      const copies = readdirSync(folder).sort();
      expect(copies).toHaveLength(2);
      spoil(join(folder, copies[damaged]!));
      expect((await gc(root)).copiesRemoved).toBe(1);
      const left = await openBook(root, { clock, mode: "read" });
      expect(Buffer.from((await left.get(leaf!))!.bytes).equals(content)).toBe(true);
      expect((await scanAll(left)).map(({ digest }) => digest)).toHaveLength(3);
      await left.close();
    },
  );

  it("refuses a book in which both copies of a large blob are damaged", async () => {
    const root = fresh();
    for (const at of [1, 2]) {
      const book = await openBook(root, { clock: manualClock(1_700_000_000_000 + at), largeBytes: 600 });
      putNode(book, ROOT, [book.put(LEAF, Buffer.from("some bytes ".padEnd(2000, ".")))], { at });
      await book.close();
    }
    for (const copy of readdirSync(join(root, "large"))) spoil(join(root, "large", copy));
    await expect(gc(root)).rejects.toMatchObject({ code: "gc-damage" });
    expect(readdirSync(join(root, "large"))).toHaveLength(2);
  });

  it("refuses a damaged book; allowed to go on, it leaves the damaged pack as it is", async () => {
    const root = fresh();
    const first = await openBook(root, { clock });
    first.put(LEAF, Buffer.from("some bytes to be damaged"));
    first.put(LEAF, Buffer.from("garbage in a damaged pack"));
    await first.close();
    const second = await openBook(root, { clock: systemClock });
    second.put(LEAF, Buffer.from("garbage in a whole pack"));
    await second.close();
    const file = join(root, "packs", readdirSync(join(root, "packs")).sort()[0]!);
    spoil(file);
    const bytes = readFileSync(file);
    await expect(gc(root)).rejects.toMatchObject({ code: "gc-damage", fields: { root } });
    expect(readdirSync(join(root, "packs"))).toHaveLength(2);
    const report = await gc(root, { despiteDamage: true });
    expect(report).toMatchObject({ blobsRemoved: 1, packsLeft: 1, damage: [{ code: "digest-mismatch" }] });
    expect(readFileSync(file).equals(bytes)).toBe(true);
    expect(readdirSync(join(root, "packs"))).toHaveLength(1);
  });

  it("refuses when a record cannot be read for its references", async () => {
    const root = fresh();
    const book = await openBook(root, { clock });
    book.put(ROOT, Buffer.from("not json"));
    await book.close();
    await expect(gc(root)).rejects.toMatchObject({
      code: "gc-damage",
      fields: { findings: [{ code: "bad-record" }] },
    });
  });

  it("merges many small packs into one", async () => {
    const root = fresh();
    for (let i = 0; i < 10; i++) {
      const book = await openBook(root, { clock });
      putNode(book, ROOT, [], { i });
      await book.close();
    }
    const before = await digestsIn(root);
    expect(await gc(root)).toMatchObject({ packsReplaced: 10, blobsKept: 10, bytesFreed: 0 });
    expect(readdirSync(join(root, "packs"))).toHaveLength(1);
    expect((await digestsIn(root)).sort()).toEqual(before.sort());
  });

  it("runs once at a time", async () => {
    const root = fresh();
    await (await openBook(root, { clock })).close();
    const lock = tryLock(join(root, "locks", "gc.lock"))!;
    await expect(gc(root)).rejects.toMatchObject({ code: "gc-running" });
    lock.release();
    await gc(root);
  });

  it("loops beside three writing processes: all they flushed is there, all garbage goes in the end", async () => {
    const root = fresh();
    const module = pathToFileURL(join(compiledModules(), "store", "index.js")).href;
    const writers = [1, 2, 3].map((name) => startProcess("store-writer", [module, root, String(name)]));
    const ends = writers.map(endOf);
    const collect = () => collectGarbage(root, { clock: systemClock, mergeBelowBytes: 100_000 });
    await (await openBook(root, { clock: systemClock })).close();
    let [removed, rounds, lines] = [0, 0, 0];
    const count = (text: string) => {
      lines += text.split("\n").length - 1;
    };
    for (const { stdout } of writers) stdout!.on("data", count);
    for (; rounds < 5 || removed === 0 || lines < 400; rounds++) removed += (await collect()).blobsRemoved;
    for (const writer of writers) writer.kill("SIGKILL");
    const finished = await Promise.all(ends);
    const acknowledged = new Set(finished.flatMap(({ lines }) => lines));
    expect(finished.flatMap(({ fault }) => fault ?? [])).toEqual([]);
    expect(acknowledged.size).toBeGreaterThanOrEqual(400);
    expect(await checkBook(root, acknowledged)).toEqual([]);
    await collect();
    expect(await checkBook(root, acknowledged)).toEqual([]);
    const book = await openBook(root, { clock, mode: "read" });
    const left = await scanAll(book);
    await book.close();
    const named = new Set(left.flatMap(({ kind, bytes }) => (kind === ROOT ? childrenOf(bytes) : [])));
    expect(left.filter(({ kind, digest }) => kind === LEAF && !named.has(digest))).toEqual([]);
    expect(new Set(left.map(({ digest }) => digest)).size).toBe(left.length);
  });
});

async function largeIn(root: string): Promise<string[]> {
  const book = await openBook(root, { clock, mode: "read" });
  const files: string[] = [];
  for await (const item of book.scan()) if (item.type === "large") files.push(item.location.file);
  await book.close();
  return files;
}
