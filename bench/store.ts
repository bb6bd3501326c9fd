/** The book compared with the machine: checked scans compared with bare SHA-256 over the same bytes, durable puts, and
 *  the growth of opening time and memory with the number of blobs. `--blobs N` sets the size of the scanned book. */
import { hash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Digest, rngFrom, systemClock } from "../src/base/index.ts";
import { newKeyPem, signerFromPem, type UnsignedHead } from "../src/contract/index.ts";
import { BlobIndex } from "../src/store/blob/blob-index.ts";
import { type Book, openBook } from "../src/store/index.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

const clock = systemClock;
const KIND = "bench.blob.v1";

export const bench: Bench = {
  summary: "scan against plain SHA-256, durable puts per second, growth of opening and index",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: { blobs: { type: "string", default: "4000" }, json: { type: "boolean" } },
    });
    const scratch = mkdtempSync(join(tmpdir(), "rollbook-bench-store-"));
    try {
      const blobs = Number(values.blobs);
      const rows = [];
      for (const [bytes, count] of [
        [50_000, blobs],
        [1000, blobs * 5],
        [1_000_000, Math.ceil(blobs / 20)],
      ] as const)
        rows.push(await measureScan(join(scratch, `scan-${bytes}`), { bytes, count }));
      printTable(rows, args);
      printTable(
        [await measurePuts(scratch, 1), await measurePuts(scratch, 8), await measurePuts(scratch, 64)],
        args,
      );
      printTable([await measureHeads(scratch)], args);
      const sizes = [1000, 10_000, 100_000];
      const growth = [];
      for (const count of sizes) growth.push(await measureOpen(join(scratch, `open-${count}`), count));
      printTable(growth, args);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  },
};

/** One client that waits for the disk after each put, with and without signed heads, in turns. */
async function measureHeads(scratch: string) {
  const signer = signerFromPem(newKeyPem());
  const sign = () => (head: UnsignedHead) => signer.signHead(head);
  const books = {
    without: await openBook(join(scratch, "heads-without"), { clock }),
    with: await openBook(join(scratch, "heads-with"), { clock, sign }),
  };
  const times = { without: [] as number[], with: [] as number[] };
  const blobs = makeBlobs(2000, 40_000);
  for (let turn = 0; turn < 40; turn++)
    for (const name of turn % 2 === 0 ? (["without", "with"] as const) : (["with", "without"] as const))
      for (let i = 0; i < 100; i++) {
        const blob = blobs.next().value as Uint8Array;
        const startMs = performance.now();
        books[name].put(KIND, blob);
        await books[name].flush();
        if (turn > 0) times[name].push(performance.now() - startMs);
      }
  await Promise.all([books.with.close(), books.without.close()]);
  const at = (name: keyof typeof times, share: number) =>
    times[name].sort((a, b) => a - b)[Math.floor(times[name].length * share)]!;
  return {
    "durable put, 1 client": "with heads against without",
    "median ms": at("with", 0.5),
    "median ratio": at("with", 0.5) / at("without", 0.5),
    "p99 ratio": at("with", 0.99) / at("without", 0.99),
  };
}

/** Blobs that all differ, without the cost of random bytes. */
function* makeBlobs(bytes: number, count: number): Generator<Uint8Array> {
  const rng = rngFrom(1);
  const blob = Buffer.from(Array.from({ length: bytes }, () => rng.u32()));
  for (let i = 0; i < count; i++) {
    blob.writeUInt32LE(i, 0);
    yield blob;
  }
}

async function fill(root: string, { bytes, count }: { bytes: number; count: number }): Promise<Digest> {
  const book = await openBook(root, { clock });
  let last: Digest | undefined;
  for (const blob of makeBlobs(bytes, count)) last = book.put(KIND, blob);
  await book.close();
  return last!;
}

async function measureScan(root: string, size: { bytes: number; count: number }) {
  await fill(root, size);
  const book = await openBook(root, { clock, mode: "read" });
  const plain: number[] = [];
  const scan: number[] = [];
  // In turns, so that drift of the machine affects both equally; the first turn is a warm-up.
  for (let turn = 0; turn < 6; turn++) {
    const timings = { plain: timePlain(size), scan: await timeScan(book, size.count) };
    if (turn === 0) continue;
    plain.push(timings.plain);
    scan.push(timings.scan);
  }
  await book.close();
  rmSync(root, { recursive: true });
  const total = size.bytes * size.count;
  return {
    blobs: size.count,
    "bytes each": size.bytes,
    "plain SHA-256, GB/s": total / median(plain) / 1e6,
    "scan, GB/s": total / median(scan) / 1e6,
    "scan × plain": median(scan.map((ms, i) => plain[i]! / ms)),
  };
}

function timePlain({ bytes, count }: { bytes: number; count: number }): number {
  // The same number of bytes, in pieces of the same length, from memory larger than the caches.
  const memory = Buffer.alloc(Math.max(bytes, 64 << 20), 7);
  const pieces = Math.floor(memory.length / bytes);
  const start = performance.now();
  for (let i = 0; i < count; i++) {
    const at = (i % pieces) * bytes;
    hash("sha256", memory.subarray(at, at + bytes), "hex");
  }
  return performance.now() - start;
}

async function timeScan(book: Book, count: number): Promise<number> {
  const start = performance.now();
  let seen = 0;
  for await (const item of book.scan()) if (item.type === "blob") seen++;
  const ms = performance.now() - start;
  if (seen !== count) throw new Error(`scan saw ${seen} of ${count} blobs`);
  return ms;
}

/** Each client puts a group of five blobs, 50 KB in total, and waits until the group is durable. */
async function measurePuts(scratch: string, clients: number) {
  const root = join(scratch, `puts-${clients}`);
  const book = await openBook(root, { clock });
  const blobs = makeBlobs(10_000, Number.POSITIVE_INFINITY);
  const waits: number[] = [];
  const start = performance.now();
  const client = async () => {
    while (performance.now() - start < 2000) {
      const begin = performance.now();
      for (let i = 0; i < 5; i++) book.put(KIND, blobs.next().value!);
      await book.flush();
      waits.push(performance.now() - begin);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const seconds = (performance.now() - start) / 1000;
  await book.close();
  rmSync(root, { recursive: true });
  waits.sort((a, b) => a - b);
  return {
    clients,
    "durable groups/s": waits.length / seconds,
    "MB/s": (waits.length * 0.05) / seconds,
    "wait p50, ms": waits[Math.floor(waits.length / 2)]!,
    "wait p99, ms": waits[Math.floor(waits.length * 0.99)]!,
  };
}

async function measureOpen(root: string, count: number) {
  const last = await fill(root, { bytes: 200, count });
  const start = performance.now();
  const book = await openBook(root, { clock, mode: "read" });
  await book.has(last);
  const openMs = performance.now() - start;
  await book.close();
  rmSync(root, { recursive: true });
  return {
    blobs: count,
    "open and index, ms": openMs,
    "µs per blob": (openMs * 1000) / count,
    ...indexBytes(count),
  };
}

function indexBytes(count: number): Record<string, number> {
  const index = new BlobIndex();
  for (let i = 0; i < count; i++)
    index.set(`sha256:${hash("sha256", String(i), "hex")}` as Digest, {
      file: 0,
      offset: 0,
      bytes: 8,
      large: false,
    });
  return { "index bytes per blob": index.byteLength / index.size };
}
