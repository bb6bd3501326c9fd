/** Times our Zarr arrays and Python's on one table of float32, in turns.
 *  In: an empty folder and a running peer. Out: one row per operation, with the ratio of the times. */
import * as fs from "node:fs";
import { join } from "node:path";
import type { Digest } from "../../src/base/digest.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import type { ArrayOptions } from "../../src/keep/replay/zarr/array-writer.ts";
import { checksumMemory } from "../../src/keep/replay/zarr/codecs/crc32c.ts";
import { loadZstd } from "../../src/keep/replay/zarr/codecs/zstd.ts";
import { createArray, FileStore, openArray } from "../../src/keep/replay/zarr/index.ts";
import { median } from "./interleave.ts";
import type { PythonPeer } from "./python-peer.ts";

const WIDTH = 16;
const ROWS = 2 ** 21;
const MEGABYTES = (ROWS * WIDTH * 4) / 1e6;
/** Chunks of 1 MiB. */
const CHUNK_ROWS = 2 ** 14;
/** Inner chunks of 64 KiB, sixteen per shard: the layout of compressed columns in a replay store. */
const INNER_ROWS = 2 ** 10;
const SHARD_CHUNKS = 16;
const COLUMNS = 32;
const COLUMN_NAMES = Array.from({ length: COLUMNS }, (_, i) => `column-${i}`);
const BATCH = 256;
const ROUNDS = 9;
/** A slow race ends after this time, but not before three rounds. */
const BUDGET_MS = 10_000;

type Layout = "none" | "crc32c" | "zstd" | "shards";
type Row = Record<string, string | number>;
/** Wall-clock time, and time of all processors. On a busy machine the processor time is more reliable. */
interface Seconds {
  wall: number;
  cpu: number;
}
interface Race {
  operation: string;
  unit: "MB/s" | "ms";
  bar?: number;
  peer(): Promise<Seconds>;
  ours(): Promise<Seconds>;
}

/** `only`: selects operations by name. Writes that later reads need are made anyway. */
export async function compareZarr(
  root: string,
  { peer, only = "" }: { peer: PythonPeer; only?: string },
): Promise<Row[]> {
  const matches = new RegExp(only);
  const rng = rngFrom(3);
  const data = sampleData(rng);
  fs.writeFileSync(join(root, "data"), data);
  await peer.call("load", join(root, "data"), WIDTH);
  const files: Files = {
    ours: (name) => join(root, "ours", name),
    peer: (name) => join(root, "python", name),
  };
  await writeColumns(files.ours("columns"), data);
  const rows: Row[] = [];
  for (const race of writes(files, { peer, data }))
    if (matches.test(race.operation)) rows.push(await run(race));
    else for (const contender of [race.peer, race.ours]) await contender();
  for (const race of reads(files, { peer, data, rng }))
    if (matches.test(race.operation)) rows.push(await run(race));
  return rows;
}

interface Files {
  ours(name: string): string;
  peer(name: string): string;
}

/** Write races. They also leave the arrays for the later reads. */
function* writes(files: Files, { peer, data }: { peer: PythonPeer; data: Float32Array }): Generator<Race> {
  const unit = "MB/s";
  const theirs = (layout: Layout, digests = false) => {
    const [chunkRows, shardChunks] = layout === "shards" ? [INNER_ROWS, SHARD_CHUNKS] : [CHUNK_ROWS, 0];
    return () => peer.call<Seconds>("write", files.peer(layout), chunkRows, shardChunks, layout, digests);
  };
  const ours =
    (layout: Layout, digests = false) =>
    () =>
      write(files.ours(layout), { layout, digests, data });
  yield { operation: "write", unit, bar: 2, peer: theirs("none"), ours: ours("none") };
  yield { operation: "write; ours also SHA-256", unit, peer: theirs("none"), ours: ours("none", true) };
  yield { operation: "write; both also SHA-256", unit, peer: theirs("none", true), ours: ours("none", true) };
  yield { operation: "write, crc32c", unit, peer: theirs("crc32c"), ours: ours("crc32c") };
  yield { operation: "write, zstd 1", unit, peer: theirs("zstd"), ours: ours("zstd") };
  yield { operation: "write, zstd 1 + crc32c, shards", unit, peer: theirs("shards"), ours: ours("shards") };
}

function* reads(
  files: Files,
  { peer, data, rng }: { peer: PythonPeer; data: Float32Array; rng: Rng },
): Generator<Race> {
  const unit = "MB/s";
  const theirs =
    (name: string, layout: Layout, ...more: unknown[]) =>
    () =>
      peer.call<Seconds>(name, files.peer(layout), ...more);
  const ours = (layout: Layout, into?: Float32Array) => () => read(files.ours(layout), into);
  yield {
    operation: `read ${COLUMNS} columns of 4 MB into new arrays`,
    unit,
    bar: 2,
    peer: () =>
      peer.call<Seconds>(
        "read_columns",
        COLUMN_NAMES.map((name) => join(files.ours("columns"), name)),
      ),
    ours: () => readColumns(files.ours("columns")),
  };
  yield {
    operation: "read 134 MB into one new array",
    unit,
    bar: 2,
    peer: theirs("read", "none"),
    ours: ours("none"),
  };
  const held = new Float32Array(data.length).fill(0);
  yield {
    operation: "read; ours into an array it is given",
    unit,
    peer: theirs("read", "none"),
    ours: ours("none", held),
  };
  for (const layout of ["none", "crc32c"] as const) {
    const peer = theirs("read_chunks", layout);
    yield {
      operation: `read chunk by chunk, ${layout}`,
      unit,
      peer,
      ours: () => readChunks(files.ours(layout)),
    };
  }
  for (const layout of ["zstd", "shards"] as const)
    yield {
      ...{ operation: `read, ${NAMES[layout]}`, unit, peer: theirs("read", layout), ours: ours(layout) },
      ...(layout === "shards" ? { bar: 1 } : {}),
    };
  yield {
    operation: "zstd 1 alone: decode frames in memory",
    unit,
    peer: theirs("decode", "zstd"),
    ours: () => decodeFrames(files.ours("zstd")),
  };
  for (const layout of ["none", "crc32c", "zstd", "shards"] as const)
    for (const [state, cacheBytes] of Object.entries(CACHES)) {
      if (state !== "no cache" && layout !== "zstd" && layout !== "shards") continue;
      yield {
        operation: `${BATCH} random rows, ${NAMES[layout]}, ${state}`,
        unit: "ms",
        ...(layout === "none" ? { bar: 5 } : layout === "shards" ? { bar: 2 } : {}),
        peer: theirs("batches", layout, BATCH, 3),
        ours: () => gather(files.ours(layout), { rng, cacheBytes }),
      };
    }
  yield {
    operation: "read chunk by chunk, crc32c; peer: plain readSync of the same files",
    unit,
    bar: 0.5,
    peer: () => readPlain(files.ours("crc32c")),
    ours: () => readChunks(files.ours("crc32c")),
  };
}

/** Cached part of the array: nothing, a quarter (as for a store of four times the cache), or all of it. */
const CACHES = { "no cache": 0, "cache of a quarter": (MEGABYTES * 1e6) / 4, "cache of all": 256e6 };
const WARMING = 8;

const NAMES: Record<Layout, string> = {
  none: "none",
  crc32c: "crc32c",
  zstd: "zstd 1",
  shards: "zstd 1 + crc32c, shards",
};

/** Runs a race in turns. The fastest round counts for both sides: it has the least disturbance from a busy machine. */
async function run({ operation, unit, bar, peer, ours }: Race): Promise<Row> {
  const best = [unmeasured(), unmeasured()] as const;
  const ratios: number[] = [];
  const start = performance.now();
  for (let round = 0; round < ROUNDS && (round < 3 || performance.now() - start < BUDGET_MS); round++) {
    const found = [await peer(), await ours()] as const;
    for (const [i, { wall, cpu }] of found.entries()) {
      best[i]!.wall = Math.min(best[i]!.wall, wall);
      best[i]!.cpu = Math.min(best[i]!.cpu, cpu);
    }
    ratios.push(found[0].cpu / found[1].cpu);
  }
  const [them, us] = best;
  const show = ({ wall }: Seconds) =>
    unit === "ms" ? (wall * 1e3).toPrecision(3) : (MEGABYTES / wall).toFixed(0);
  return {
    ...{ operation, unit, peer: show(them), ours: show(us), ratio: them.wall / us.wall },
    ...{ bar: bar === undefined ? "" : `≥ ${bar}`, "ratio of CPU time": them.cpu / us.cpu },
    "by round": `${median(ratios).toFixed(2)} [${Math.min(...ratios).toFixed(2)}, ${Math.max(...ratios).toFixed(2)}]`,
  };
}

function unmeasured(): Seconds {
  return { wall: Number.POSITIVE_INFINITY, cpu: Number.POSITIVE_INFINITY };
}

/** Values in steps of 1/64, so that compression has an effect. */
function sampleData(rng: Rng): Float32Array {
  const data = new Float32Array(ROWS * WIDTH);
  for (let i = 0; i < data.length; i++) data[i] = (rng.u32() % 512) / 64;
  return data;
}

async function timed(work: () => unknown, count = 1): Promise<Seconds> {
  const [start, before] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(before);
  return { wall: (performance.now() - start) / 1e3 / count, cpu: (user + system) / 1e6 / count };
}

const NO_DIGEST = `sha256:${"0".repeat(64)}` as Digest;

async function write(
  root: string,
  { layout, digests, data }: { layout: Layout; digests: boolean; data: Float32Array },
): Promise<Seconds> {
  fs.rmSync(root, { recursive: true, force: true });
  const options: ArrayOptions<"float32"> = {
    ...{ dtype: "float32", row: [WIDTH], crc32c: layout === "crc32c" || layout === "shards" },
    ...(layout === "shards"
      ? { chunkRows: INNER_ROWS, shardChunks: SHARD_CHUNKS }
      : { chunkRows: CHUNK_ROWS }),
    ...(layout === "zstd" || layout === "shards" ? { compressor: { name: "zstd", level: 1 } } : {}),
    ...(digests ? {} : { digest: () => NO_DIGEST }),
  };
  return timed(async () => {
    const writer = createArray(new FileStore(root), "", options);
    await writer.append(data);
    await writer.close();
  });
}

async function read(root: string, into?: Float32Array): Promise<Seconds> {
  const array = await openArray<"float32">(new FileStore(root), "");
  return timed(() => array.read(into === undefined ? {} : { into }));
}

async function writeColumns(root: string, data: Float32Array): Promise<void> {
  const size = data.length / COLUMNS;
  for (const [i, name] of COLUMN_NAMES.entries()) {
    const writer = createArray(new FileStore(root), name, { dtype: "float32", crc32c: false });
    await writer.append(data.subarray(i * size, (i + 1) * size));
    await writer.close();
  }
}

async function readColumns(root: string): Promise<Seconds> {
  const store = new FileStore(root);
  const arrays = await Promise.all(COLUMN_NAMES.map((name) => openArray(store, name)));
  return timed(async () => {
    const values = [];
    for (const array of arrays) values.push(await array.read());
    return values;
  });
}

async function readChunks(root: string): Promise<Seconds> {
  const array = await openArray(new FileStore(root), "");
  return timed(async () => {
    let rows = 0;
    for await (const chunk of array.chunks({ reuse: true })) rows += chunk.to - chunk.from;
    return rows;
  });
}

/** Reads minibatches into one reused array. Earlier, untimed minibatches fill the cache. */
async function gather(root: string, { rng, cacheBytes }: { rng: Rng; cacheBytes: number }): Promise<Seconds> {
  const store = new FileStore(root);
  const array = await openArray<"float32">(store, "", { cacheBytes });
  const into = new Float32Array(BATCH * WIDTH);
  const picks = (count: number) =>
    Array.from({ length: count }, () => Uint32Array.from({ length: BATCH }, () => rng.below(ROWS)));
  if (cacheBytes > 0) for (const pick of picks(WARMING)) await array.gather(pick, into);
  const timedPicks = picks(3);
  const seconds = await timed(async () => {
    for (const pick of timedPicks) await array.gather(pick, into);
  }, timedPicks.length);
  store.close();
  return seconds;
}

/** The decoding alone: the least work for any reader of this layout. */
async function decodeFrames(root: string): Promise<Seconds> {
  const frames = chunkFiles(root).map((path) => fs.readFileSync(path));
  const { decode } = await loadZstd();
  return timed(async () => {
    for (const frame of frames) await decode(frame, 2 ** 21);
  });
}

function chunkFiles(root: string): string[] {
  return Array.from({ length: ROWS / CHUNK_ROWS }, (_, i) => join(root, "c", String(i), "0"));
}

function readPlain(root: string): Promise<Seconds> {
  const paths = chunkFiles(root);
  // The same kind of memory as ours: page-aligned, which makes a plain read a third faster.
  const buffer = checksumMemory(CHUNK_ROWS * WIDTH * 4 + 4);
  return timed(() => {
    for (const path of paths) {
      const fd = fs.openSync(path, "r");
      fs.readSync(fd, buffer, 0, buffer.length, 0);
      fs.closeSync(fd);
    }
  });
}
