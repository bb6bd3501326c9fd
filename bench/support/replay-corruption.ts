/** Damages replay stores at random, one way at a time, and checks that the damage is found.
 *  In: number of trials, seed. Out: number of damages found by `validateReplay`, and if relevant also by opening or
 *  reading. Stores are segmented, plain, and plain with compressed shards. */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { manualClock } from "../../src/base/clock.ts";
import { reasonOf } from "../../src/base/errors.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import {
  appendReplay,
  compactReplay,
  openReplay,
  validateReplay,
  writeReplay,
} from "../../src/keep/replay/index.ts";
import { fastFolder } from "../../test/support/fast-folder.ts";
import { ReplayWorld } from "../../test/support/replay-world.ts";

export interface CorruptionOptions {
  readonly trials: number;
  readonly seed: bigint;
  readonly onFailure?: (what: string) => void;
}

interface Victim {
  readonly root: string;
  /** Every relevant file, relative to the root. */
  readonly files: readonly string[];
  /** An earlier manifest of the same store. */
  readonly stale: Uint8Array;
}

/** Description of the damage, and the damaged files. */
interface Damage {
  readonly what: string;
  readonly files: readonly string[];
}

export async function corruptReplay(options: CorruptionOptions): Promise<{ passed: number; failed: number }> {
  const { trials, seed, onFailure = () => undefined } = options;
  const folder = fastFolder("replay-corruption");
  const rng = rngFrom(seed).split("replay-corruption");
  const tally = { passed: 0, failed: 0 };
  try {
    const victims = await makeVictims(folder, seed);
    for (let trial = 0; trial < trials; trial++) {
      const draw = rng.split(trial);
      const fault = await damageOnce(victims[trial % victims.length]!, draw, trial);
      if (fault !== undefined) onFailure(`trial ${trial}: ${fault}`);
      tally[fault === undefined ? "passed" : "failed"]++;
    }
    // The findings must come from the damage: after it is undone, every store is valid again.
    for (const { root } of victims) {
      const { count, errors } = await validateReplay(root);
      if (count === 0) continue;
      tally.failed++;
      onFailure(`${root} is not sound without damage: ${JSON.stringify(errors[0])}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return tally;
}

async function makeVictims(folder: string, seed: bigint): Promise<Victim[]> {
  const world = new ReplayWorld({ seed, steps: 5 });
  world.add(10);
  const quick = { clock: manualClock(1), durable: false } as const;
  const [segmented, plain, packed] = ["segmented", "plain", "packed"].map((name) => join(folder, name));
  const { manifest } = await writeReplay({
    root: segmented!,
    read: world.read,
    rollouts: world.rollouts.slice(0, 6),
    ...quick,
  });
  const stale = readFileSync(join(segmented!, "manifest.json"));
  await appendReplay({ root: segmented!, read: world.read, rollouts: world.rollouts, ...quick });
  await compactReplay({ from: segmented!, to: plain!, ...quick });
  const layout = { codec: "zstd", chunkBytes: 64, shardChunks: 3 } as const;
  await compactReplay({ from: segmented!, to: packed!, layout, ...quick });
  // A plain store is written once: its stale manifest comes from another compaction.
  await compactReplay({
    from: segmented!,
    to: join(folder, "other"),
    clock: manualClock(2),
    durable: false,
    layout: { codec: "gzip" },
  });
  const other = readFileSync(join(folder, "other", "manifest.json"));
  if (manifest.generation !== 1) throw new Error("the first write is commit 1");
  return [
    { root: segmented!, files: filesOf(segmented!), stale },
    { root: plain!, files: filesOf(plain!), stale: other },
    { root: packed!, files: filesOf(packed!), stale: other },
  ];
}

const KINDS = [
  ...[
    "flip a bit of a chunk",
    "flip a bit of any file",
    "remove a chunk",
    "remove any file",
    "truncate a file",
  ],
  ...[
    "append to a file",
    "edit metadata",
    "change a data type",
    "swap two arrays",
    "put back an old manifest",
  ],
] as const;

/** Damages one store, checks that the damage is found, and undoes it. */
async function damageOnce(victim: Victim, rng: Rng, trial: number): Promise<string | undefined> {
  const before = new Map<string, Uint8Array>();
  const write = (file: string, bytes: Uint8Array | undefined) => {
    const path = join(victim.root, file);
    before.set(file, readFileSync(path));
    if (bytes === undefined) rmSync(path);
    else writeFileSync(path, bytes);
  };
  const kind = KINDS[Math.floor(trial / 3) % KINDS.length]!;
  const { what, files } = damage(victim, { kind, rng, write });
  try {
    const { valid, errors } = await validateReplay(victim.root);
    if (valid) return `${what}: not found`;
    if (!errors.every(({ array, reason, code }) => array !== "" && reason !== "" && code.length > 0))
      return `${what}: an error without a name`;
    return await notRefused(victim.root, { files, what });
  } catch (error) {
    return `${what}: validation ended in ${reasonOf(error)}`;
  } finally {
    for (const [file, bytes] of before) writeFileSync(join(victim.root, file), bytes);
  }
}

function damage(
  victim: Victim,
  {
    kind,
    rng,
    write,
  }: { kind: (typeof KINDS)[number]; rng: Rng; write(file: string, bytes?: Uint8Array): void },
): Damage {
  const pick = (files: readonly string[]) => files[rng.below(files.length)]!;
  const read = (file: string) => Uint8Array.from(readFileSync(join(victim.root, file)));
  const chunks = victim.files.filter((file) => file.includes("/c/"));
  const arrays = victim.files.filter((file) => file.split("/").at(-1) === "zarr.json");
  const one = (file: string, change: (bytes: Uint8Array) => Uint8Array | undefined): Damage => {
    write(file, change(read(file)));
    return { what: `${kind}: ${file}`, files: [file] };
  };
  switch (kind) {
    case "flip a bit of a chunk":
      return one(pick(chunks), (bytes) => flip(bytes, rng));
    case "flip a bit of any file":
      return one(pick(victim.files), (bytes) => flip(bytes, rng));
    case "remove a chunk":
      return one(pick(chunks), () => undefined);
    case "remove any file":
      return one(pick(victim.files), () => undefined);
    case "truncate a file":
      return one(pick(victim.files), (bytes) => bytes.subarray(0, rng.below(bytes.length)));
    case "append to a file":
      return one(pick(victim.files), (bytes) =>
        Buffer.concat([bytes, Buffer.alloc(1 + rng.below(8), rng.below(256))]),
      );
    case "edit metadata":
      return one(pick(arrays), (bytes) => editJson(bytes, rng));
    case "change a data type":
      return one(pick(arrays.filter((file) => text(read(file)).includes('"data_type"'))), (bytes) =>
        Buffer.from(
          text(bytes).replace(
            /"data_type":"(\w+)"/,
            (_, type) => `"data_type":"${type === "int32" ? "float32" : "int32"}"`,
          ),
        ),
      );
    case "swap two arrays":
      return swap({ chunks, pick, read, write });
    case "put back an old manifest":
      return one("manifest.json", () => victim.stale);
    default:
      return kind satisfies never;
  }
}

/** Exchanges the chunks of two arrays with different bytes. Each array still looks complete to its readers. */
function swap({
  chunks,
  pick,
  read,
  write,
}: {
  chunks: readonly string[];
  pick(files: readonly string[]): string;
  read(file: string): Uint8Array;
  write(file: string, bytes?: Uint8Array): void;
}): Damage {
  const a = pick(chunks);
  const others = chunks.filter((file) => file !== a && Buffer.compare(read(file), read(a)) !== 0);
  const alike = others.filter((file) => read(file).length === read(a).length);
  const b = pick(alike.length > 0 ? alike : others);
  const held = read(a);
  write(a, read(b));
  write(b, held);
  return { what: `swap ${a} and ${b}`, files: [a, b] };
}

/** Opening a store reads its manifest, its root and the root of each segment; reading a column reads its chunks. */
async function notRefused(root: string, { files, what }: Damage): Promise<string | undefined> {
  const opens = files.some((file) => /^(?:segments\/s\d+\/)?zarr\.json$|^manifest\.json$/.test(file));
  try {
    const store = await openReplay(root);
    try {
      if (opens) return `${what}: the store opens as if nothing were wrong`;
      for (const file of files) await readThrough(root, file);
    } finally {
      store.close();
    }
  } catch {
    return undefined;
  }
  // A chunk of another array, and metadata that opening does not read, are read without an error.
  const silent = what.startsWith("swap") || files.every((file) => file.endsWith("zarr.json"));
  return silent ? undefined : `${what}: it reads as if nothing were wrong`;
}

async function readThrough(root: string, file: string): Promise<void> {
  const [, segment, table, column] = /^(?:segments\/(s\d+)\/)?(\w+)\/(\w+)\/c\//.exec(file) ?? [];
  if (table === undefined) return;
  const store = await openReplay(root);
  try {
    const index =
      segment === undefined ? 0 : store.manifest.segments.findIndex(({ path }) => path.endsWith(segment));
    await store.segments[index]!.reader.read(table as never, [column] as never[]);
  } finally {
    store.close();
  }
}

function flip(bytes: Uint8Array, rng: Rng): Uint8Array {
  const bit = rng.below(bytes.length * 8);
  bytes[bit >> 3]! ^= 1 << (bit & 7);
  return bytes;
}

/** Changes one value somewhere in the JSON, keeping its type. */
function editJson(bytes: Uint8Array, rng: Rng): Uint8Array {
  const json = JSON.parse(text(bytes));
  const places: { at: Record<string, unknown>; key: string }[] = [];
  const walk = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const key of Object.keys(value)) {
      const at = value as Record<string, unknown>;
      if (typeof at[key] === "object" && at[key] !== null) walk(at[key]);
      else places.push({ at, key });
    }
  };
  walk(json);
  const { at, key } = places[rng.below(places.length)]!;
  const value = at[key];
  at[key] = typeof value === "number" ? value + 1 : typeof value === "string" ? `${value}x` : !value;
  return Buffer.from(JSON.stringify(json));
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}

function filesOf(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => !file.startsWith("writer.lock") && statSync(join(root, file)).isFile())
    .map((file) => file.replaceAll("\\", "/"))
    .sort();
}
