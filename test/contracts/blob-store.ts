/** The contract of every BlobStore; each driver's test runs it. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Digest, digestBytes } from "../../src/base/index.ts";
import type { BlobStore, ScanItem } from "../../src/store/blob/blob-store.ts";
import { LARGE_BYTES } from "../../src/store/pack/pack-format.ts";

export interface StoreFixture {
  open(): Promise<BlobStore>;
  /** True if flushed blobs are there again after close and open. */
  readonly persistent: boolean;
}

/** `sequences` is the number of operation sequences that are drawn. It is smaller where each operation is a request to
 *  a server. */
export function describeBlobStore(
  name: string,
  fixture: () => Promise<StoreFixture>,
  { sequences = 25 } = {},
): void {
  describe(`${name} keeps the promises of a blob store`, () => {
    it("gives back what was put, at once, under SHA-256(kind, 0x00, bytes)", async () => {
      const store = await (await fixture()).open();
      const bytes = Uint8Array.of(1, 2, 3);
      const digest = store.put("test.kind", bytes);
      expect(digest).toBe(digestBytes("test.kind", bytes));
      expect(await store.get(digest)).toEqual({ kind: "test.kind", bytes });
      expect(await store.has(digest)).toBe(true);
      await store.close();
    });

    it("keeps the same bytes under two kinds apart", async () => {
      const store = await (await fixture()).open();
      const [a, b] = [store.put("a", Uint8Array.of(7)), store.put("b", Uint8Array.of(7))];
      expect(a).not.toBe(b);
      expect((await store.get(a))?.kind).toBe("a");
      expect((await store.get(b))?.kind).toBe("b");
      await store.close();
    });

    it("has nothing that was not put", async () => {
      const store = await (await fixture()).open();
      const stranger = digestBytes("test.kind", Uint8Array.of(9));
      expect(await store.get(stranger)).toBeUndefined();
      expect(await store.has(stranger)).toBe(false);
      await store.close();
    });

    it("keeps its own copy: changing the array after put changes nothing", async () => {
      const store = await (await fixture()).open();
      const bytes = new Uint8Array(1000).fill(5);
      const digest = store.put("test.kind", bytes);
      bytes.fill(6);
      expect((await store.get(digest))?.bytes).toEqual(new Uint8Array(1000).fill(5));
      await store.close();
    });

    it("hands out bytes that begin 8-byte aligned", async () => {
      const store = await (await fixture()).open();
      for (let length = 0; length < 20; length++)
        for (const kind of ["k", "kind.of.some.length", "abc.f32"]) {
          const blob = await store.get(store.put(kind, new Uint8Array(length)));
          expect(blob!.bytes.byteOffset % 8).toBe(0);
        }
      for await (const item of store.scan())
        if (item.type === "blob") expect(item.bytes.byteOffset % 8).toBe(0);
      await store.close();
    });

    it("gives in runs what it gives one by one", async () => {
      const store = await (await fixture()).open();
      for (let i = 0; i < 300; i++) store.put("test.kind", Buffer.alloc(20 * i, i));
      store.put("test.kind", Buffer.alloc(LARGE_BYTES));
      const digests: (Digest | undefined)[] = [];
      for await (const item of store.scan()) if (item.type !== "damage") digests.push(item.digest);
      const inRuns: (Digest | undefined)[] = [];
      for await (const run of store.scanRuns())
        for (const item of run) if (item.type !== "damage") inRuns.push(item.digest);
      expect(new Set(inRuns).size).toBe(301);
      expect(inRuns).toEqual(digests);
      await store.close();
    });

    it("stores a blob that is put twice once", async () => {
      const store = await (await fixture()).open();
      for (let i = 0; i < 3; i++) store.put("test.kind", Uint8Array.of(1));
      await store.flush();
      expect(await scanAll(store)).toHaveLength(1);
      await store.close();
    });

    it("refuses kinds that are not kinds, and writes nothing", async () => {
      const store = await (await fixture()).open();
      for (const kind of [
        "",
        "A",
        "a/b",
        "..",
        "a..b",
        "a b",
        "x".repeat(129),
        "é",
        "rollbook.pack-header.v1",
        "a\0",
      ])
        expect(() => store.put(kind, new Uint8Array(1))).toThrowError(
          expect.objectContaining({ code: "bad-kind" }),
        );
      expect(await scanAll(store)).toEqual([]);
      await store.close();
    });

    it("shares a flush among concurrent callers, and resolves all of them", async () => {
      const store = await (await fixture()).open();
      const writers = Array.from({ length: 50 }, async (_, i) => {
        for (let j = 0; j < 5; j++) {
          store.put("test.kind", Uint8Array.of(i, j));
          await store.flush();
        }
      });
      await Promise.all(writers);
      expect(await scanAll(store)).toHaveLength(250);
      await store.close();
    });

    it("refuses to work once closed; closing twice is no error", async () => {
      const store = await (await fixture()).open();
      const digest = store.put("test.kind", Uint8Array.of(1));
      await store.close();
      await store.close();
      const closed = expect.objectContaining({ code: "store-closed" });
      expect(() => store.put("test.kind", Uint8Array.of(1))).toThrowError(closed);
      await expect(store.get(digest)).rejects.toThrowError(closed);
      await expect(store.flush()).rejects.toThrowError(closed);
    });

    it("any sequence of put, flush, close and open keeps exactly what was put", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
          const made = await fixture();
          let store = await made.open();
          const model = new Map<Digest, { kind: string; bytes: Uint8Array }>();
          for (const step of actions) {
            if (step.do === "put") model.set(store.put(step.kind, step.bytes), step);
            else if (step.do === "flush") await store.flush();
            else if (made.persistent) {
              await store.close();
              store = await made.open();
            }
          }
          for (const [digest, { kind, bytes }] of model) {
            const blob = (await store.get(digest))!;
            expect(blob.kind).toBe(kind);
            expect(Buffer.compare(blob.bytes, bytes)).toBe(0);
          }
          const seen = await scanAll(store);
          expect(new Set(seen.map((item) => item.digest))).toEqual(new Set(model.keys()));
          for (const { digest, kind, bytes } of seen) expect(digestBytes(kind, bytes)).toBe(digest);
          await store.close();
        }),
        { numRuns: sequences },
      );
    });
  });
}

const action = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("put" as const),
      kind: fc.constantFrom("a", "rollbook.column.f32", "test.kind.v1"),
      bytes: fc.oneof(
        fc.uint8Array({ maxLength: 64 }),
        fc.uint8Array({ minLength: 1, maxLength: 4 }).map((seed) => spread(seed, 3000)),
        fc.uint8Array({ minLength: 1, maxLength: 4 }).map((seed) => spread(seed, 70_000)),
      ),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ do: "flush" as const }) },
  { weight: 1, arbitrary: fc.constant({ do: "reopen" as const }) },
);

function spread(seed: Uint8Array, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => seed[i % seed.length]! + i);
}

/** Every blob of a store, copied; damage fails the test. Large blobs are fetched. */
export async function scanAll(
  store: BlobStore,
): Promise<{ digest: Digest; kind: string; bytes: Uint8Array }[]> {
  const items: { digest: Digest; kind: string; bytes: Uint8Array }[] = [];
  for await (const item of store.scan()) {
    if (item.type === "damage") throw new Error(JSON.stringify(item satisfies ScanItem));
    const bytes = item.type === "blob" ? item.bytes.slice() : (await store.get(item.digest))!.bytes;
    items.push({ digest: item.digest, kind: item.kind, bytes });
  }
  return items;
}
