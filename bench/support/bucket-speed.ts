/** Write and read speed of a bucket compared with the official client on the same objects, in turns. In: an S3 server.
 *  Out: MB/s, by wall clock and by processor time of this process.
 *  A book writes large blobs and packs. A replay store is fetched to a machine without a copy and read from end to end.
 *  The client puts the same objects one after the other, and reads them in ranges, one after the other. */
import { randomFillSync } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GetObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { systemClock } from "../../src/base/clock.ts";
import { withReplay } from "../../src/book/replay/index.ts";
import { openReplay, readDense, TABLES, type TableName } from "../../src/keep/replay/index.ts";
import { checkOut, openBook } from "../../src/store/index.ts";
import { type S3Server, startS3 } from "../../test/support/s3-server.ts";
import { median } from "./interleave.ts";
import { makeStore } from "./replay-build.ts";

const MB = 1e6;
const RANGE_BYTES = 8 * 1024 * 1024;

export interface BucketSpeedOptions {
  readonly rounds: number;
  /** Size of the large blobs, of 5 MB each; a quarter as much again in blobs of 64 KB. */
  readonly megabytes: number;
  readonly candidates: number;
}

export async function measureBucketSpeed({ rounds, megabytes, candidates }: BucketSpeedOptions) {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-bucket-speed-"));
  const server = await startS3();
  const before = { ...process.env };
  Object.assign(process.env, server.env);
  const client = new S3Client({ endpoint: server.endpoint, region: "us-east-1", forcePathStyle: true });
  const at: SpeedPlace = { folder, server, client };
  try {
    const writes = await compareWrites(at, { rounds, megabytes });
    return [writes, await compareReads(at, { rounds, candidates })];
  } finally {
    process.env = before;
    client.destroy();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface SpeedPlace {
  readonly folder: string;
  readonly server: S3Server;
  readonly client: S3Client;
}

async function compareWrites(at: SpeedPlace, { rounds, megabytes }: { rounds: number; megabytes: number }) {
  const turns: Turn[] = [];
  for (let round = 0; round <= rounds; round++) {
    const blobs = blobsOf(megabytes);
    const book = `book-${round}`;
    const own = await writeBook(at, book, blobs);
    const objects = await objectsOf(at, book);
    const bytes = objects.reduce((sum, each) => sum + each.bytes.length, 0);
    const raw = await timed(async () => {
      for (const { key, bytes: Body } of objects) await put(at, `raw-${round}/${key}`, Body);
    });
    // The first round is a warm-up.
    if (round > 0) turns.push({ bytes, own, raw });
  }
  return rowOf("book: put, flush, close", "PutObject of the same objects", turns);
}

async function compareReads(at: SpeedPlace, { rounds, candidates }: { rounds: number; candidates: number }) {
  const url = `s3://${at.server.bucket}/replay`;
  process.env.ROLLBOOK_CACHE = join(at.folder, "writer");
  await withReplay(url, "write", (root) => makeStore(root, candidates));
  const objects = await listOf(at, "replay");
  const bytes = objects.reduce((sum, each) => sum + each.bytes, 0);
  const turns: Turn[] = [];
  for (let round = 0; round <= rounds; round++) {
    process.env.ROLLBOOK_CACHE = join(at.folder, `reader-${round}`);
    const own = await timed(() => withReplay(url, "read", readAll));
    const raw = await timed(async () => {
      for (const { key, bytes: size } of objects) await getInRanges(at, key, size);
    });
    rmSync(process.env.ROLLBOOK_CACHE, { recursive: true, force: true });
    if (round > 0) turns.push({ bytes, own, raw });
  }
  return rowOf(
    `replay store: fetch, check, read all columns (${objects.length} objects, ${Math.round(bytes / MB)} MB)`,
    "GetObject by ranges of 8 MiB",
    turns,
  );
}

interface Spent {
  readonly wall: number;
  /** Processor time of this process, all its threads. */
  readonly processor: number;
}

/** One turn of each side on the same bytes. */
interface Turn {
  readonly bytes: number;
  readonly own: Spent;
  readonly raw: Spent;
}

function rowOf(what: string, client: string, turns: readonly Turn[]) {
  const ratios = turns.map(({ own, raw }) => raw.wall / own.wall).sort((a, b) => a - b);
  return {
    ...{ what, "MB/s": median(turns.map(({ bytes, own }) => bytes / MB / own.wall)), client },
    "client MB/s": median(turns.map(({ bytes, raw }) => bytes / MB / raw.wall)),
    "/ client": median(ratios),
    "lowest to highest": `${ratios[0]!.toFixed(2)} to ${ratios.at(-1)!.toFixed(2)}`,
    "/ client by processor": median(turns.map(({ own, raw }) => raw.processor / own.processor)),
    bar: "0.5",
  };
}

function blobsOf(megabytes: number): Buffer[] {
  const of = (count: number, size: number) =>
    Array.from({ length: count }, () => randomFillSync(Buffer.alloc(size)));
  return [...of(Math.ceil(megabytes / 5), 5e6), ...of(Math.ceil((megabytes * 1e6) / 4 / 65_536), 65_536)];
}

/** Timed from the first put to the close; the session has begun before. */
async function writeBook(
  { folder, server }: SpeedPlace,
  name: string,
  blobs: readonly Buffer[],
): Promise<Spent> {
  const root = join(folder, name);
  await checkOut(`s3://${server.bucket}/${name}`, root);
  const book = await openBook(root, { clock: systemClock });
  return timed(async () => {
    for (const bytes of blobs) book.put("bench.blob", bytes);
    await book.flush();
    await book.close();
  });
}

async function readAll(root: string): Promise<void> {
  const store = await openReplay(root);
  for (const { reader } of store.segments)
    for (const [table, { columns }] of Object.entries(TABLES))
      for await (const _ of reader.blocks(table as TableName, Object.keys(columns) as never)) void _;
  await readDense(store);
  store.close();
}

async function listOf({ server, client }: SpeedPlace, prefix: string) {
  const found: { key: string; bytes: number }[] = [];
  let token: string | undefined;
  do {
    const page = await client.send(
      new ListObjectsV2Command({
        ...{ Bucket: server.bucket, Prefix: `${prefix}/` },
        ...(token === undefined ? {} : { ContinuationToken: token }),
      }),
    );
    for (const { Key = "", Size = 0 } of page.Contents ?? []) found.push({ key: Key, bytes: Size });
    token = page.NextContinuationToken;
  } while (token !== undefined);
  return found;
}

async function objectsOf(at: SpeedPlace, prefix: string) {
  const objects: { key: string; bytes: Uint8Array }[] = [];
  for (const { key } of await listOf(at, prefix)) {
    const { Body } = await at.client.send(new GetObjectCommand({ Bucket: at.server.bucket, Key: key }));
    objects.push({ key, bytes: await Body!.transformToByteArray() });
  }
  return objects;
}

async function put({ server, client }: SpeedPlace, Key: string, Body: Uint8Array): Promise<void> {
  await client.send(new PutObjectCommand({ Bucket: server.bucket, Key, Body }));
}

async function getInRanges({ server, client }: SpeedPlace, Key: string, size: number): Promise<void> {
  for (let from = 0; from < size; from += RANGE_BYTES) {
    const Range = `bytes=${from}-${Math.min(size, from + RANGE_BYTES) - 1}`;
    const { Body } = await client.send(new GetObjectCommand({ Bucket: server.bucket, Key, Range }));
    await Body!.transformToByteArray();
  }
}

/** Time of the work in seconds. */
async function timed(work: () => Promise<void>): Promise<Spent> {
  const [start, before] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(before);
  return { wall: (performance.now() - start) / 1000, processor: (user + system) / 1e6 };
}
