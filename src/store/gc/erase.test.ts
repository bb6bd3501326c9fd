import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scanAll } from "../../../test/contracts/blob-store.ts";
import { type Digest, manualClock } from "../../base/index.ts";
import { MEDIA_KIND } from "../../contract/rollout/call.ts";
import { RolloutContent } from "../../contract/rollout/rollout.ts";
import { Task } from "../../contract/task/task.ts";
import { Tombstone } from "../../contract/trust/tombstone.ts";
import { openBook } from "../book.ts";
import { openCatalog } from "../catalog/catalog.ts";
import { eraseBlobs, planErasure } from "./erase.ts";
import { collectGarbage } from "./gc.ts";

let scratch = "";
let made = 0;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "rollbook-erase-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const fresh = () => join(scratch, String(made++));
const clock = manualClock(1_700_000_000_000);
const [ROOT, NODE, LEAF] = [Task.kind, RolloutContent.kind, MEDIA_KIND];
const json = (value: object) => Buffer.from(JSON.stringify(value));
const digestsIn = async (root: string): Promise<Digest[]> => {
  const book = await openBook(root, { clock, mode: "read" });
  const found = (await scanAll(book)).map(({ digest }) => digest);
  await book.close();
  return [...new Set(found)].sort();
};

describe("erasing", () => {
  it("removes the records and what only they lead to, through any graph, and nothing that another root needs", async () => {
    const blob = fc.record({
      kind: fc.constantFrom(ROOT, ROOT, NODE, LEAF),
      links: fc.array(fc.nat(1000), { maxLength: 4 }),
      size: fc.constantFrom(1, 900),
      close: fc.boolean(),
      erased: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(blob, { minLength: 1, maxLength: 25 }), async (blobs) => {
        const root = fresh();
        const open = () => openBook(root, { clock, packBytes: 1500, largeBytes: 600 });
        let book = await open();
        const all = new Map<Digest, { children: Digest[]; isRoot: boolean; erased: boolean }>();
        for (const [i, { kind, links, size, close, erased }] of blobs.entries()) {
          const known = [...all.keys()];
          const children = kind === LEAF ? [] : links.flatMap((n) => known[n % (known.length || 1)] ?? []);
          const bytes =
            kind === LEAF ? new Uint8Array(size).fill(i) : json({ children, i, pad: "x".repeat(size) });
          const isRoot = kind === ROOT;
          all.set(book.put(kind, bytes), { children, isRoot, erased: erased && kind !== LEAF });
          if (!close) continue;
          await book.close();
          book = await open();
        }
        await book.close();
        const isErased = (digest: Digest) => all.get(digest)!.erased;
        const walk = (from: readonly Digest[], stop: (digest: Digest) => boolean) => {
          const found = new Set<Digest>();
          const visit = (digest: Digest): void => {
            if (found.has(digest) || stop(digest)) return;
            found.add(digest);
            for (const child of all.get(digest)!.children) visit(child);
          };
          for (const digest of from) visit(digest);
          return found;
        };
        const [roots, records] = [
          [...all].filter(([, { isRoot }]) => isRoot).map(([digest]) => digest),
          [...all.keys()].filter(isErased),
        ];
        const kept = walk(roots, isErased);
        const doomed = [...walk(records, () => false)].filter((digest) => !kept.has(digest)).sort();
        const before = await digestsIn(root);
        const plan = await planErasure(root, { clock, records });
        expect(await digestsIn(root)).toEqual(before);
        expect(plan.blobs.map(({ digest }) => digest)).toEqual(doomed);
        expect(await eraseBlobs(root, { clock, records })).toEqual(plan);
        expect(await digestsIn(root)).toEqual([...kept].sort());
        expect(readdirSync(join(root, "large")).length).toBeLessThanOrEqual(kept.size);
        expect(await eraseBlobs(root, { clock, records })).toEqual({ blobs: [], bytes: 0 });
      }),
      { numRuns: 25 },
    );
  });

  it("refuses while an unknown kind may need what is to go, and spares what an unknown kind names", async () => {
    const root = fresh();
    const book = await openBook(root, { clock });
    const leaf = book.put(LEAF, Uint8Array.of(1));
    const record = book.put(ROOT, json({ children: [leaf] }));
    book.put("rollbook.tomorrow.v1", json({ needs: [leaf] }));
    await book.close();
    const plan = await planErasure(root, { clock, records: [record] });
    expect(plan.blobs.map(({ digest }) => digest)).toEqual([record]);
    const other = await openBook(root, { clock });
    other.put("rollbook.tomorrow.v1", Uint8Array.of(0xa1));
    await other.close();
    await expect(eraseBlobs(root, { clock, records: [record] })).rejects.toMatchObject({
      code: "erase-blocked",
    });
    expect(await digestsIn(root)).toContain(record);
  });

  it("leaves a catalog with the rows that a rebuild makes, and no memory of lost roots", async () => {
    const root = fresh();
    const book = await openBook(root, { clock });
    const record = book.put(ROOT, json({ id: "a" }));
    await book.close();
    const later = await openBook(root, { clock });
    const kept = later.put(ROOT, json({ id: "b" }));
    await later.close();
    const catalog = openCatalog(root);
    await catalog.sync();
    const writer = await openBook(root, { clock });
    const stone = { subjects: [], records: [{ digest: record, kind: ROOT }], blobs: [] };
    const tombstone = writer.put(Tombstone.kind, json({ ...stone, reason: "", by: "owner", atMs: 1 }));
    await writer.close();
    await eraseBlobs(root, { clock, records: [record] });
    await catalog.sync();
    expect(catalog.lost()).toEqual([]);
    const rows = () => [[...catalog.records()], catalog.totals(), catalog.referencesOf(tombstone)];
    const synced = rows();
    await catalog.rebuild();
    expect(rows()).toEqual(synced);
    expect(catalog.record(record)).toBeUndefined();
    catalog.close();
    expect(await collectGarbage(root, { clock })).toMatchObject({ blobsKept: 2, blobsRemoved: 0 });
    expect(await digestsIn(root)).toEqual([kept, tombstone].sort());
  });
});
