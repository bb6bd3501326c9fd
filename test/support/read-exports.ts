/** Readers of exported batches, written from the descriptions of the formats and not from our writers. hyparquet reads
 *  Parquet. Out: the provenance and the rows as plain JSON values, for a comparison with `plainRow`. For tests only. */
import { readFileSync } from "node:fs";
import { crc32 } from "node:zlib";
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import type { ExpectedRow } from "./random-batches.ts";

type Plain = Record<string, unknown>;

export interface ReadBack {
  readonly provenance: Plain;
  readonly rows: Plain[];
}

const TOKENS = ["ids", "logprobs", "mask", "turns", "rewards", "advantages"] as const;

export function plainRow(row: ExpectedRow): Plain {
  const facts = {
    content: row.content,
    stream: row.stream,
    rolloutId: row.rolloutId,
    group: row.group ?? null,
    weightBps: row.weightBps,
    samples: row.samples,
    reward: row.reward,
    segments: row.segments.map(({ start, end, revision: { id, digest } }) => [start, end, id, digest]),
  };
  if (row.level === "step") return { ...facts, steps: row.steps };
  return { ...facts, ...Object.fromEntries(TOKENS.map((name) => [name, Array.from(row[name])])) };
}

export function readJsonl(path: string): ReadBack {
  const lines = readFileSync(path, "utf8").split("\n");
  if (lines.pop() !== "") throw new Error("the last line does not end");
  const [provenance, ...rows] = lines.map((line) => JSON.parse(line));
  return {
    provenance,
    rows: rows.map(({ rollout_id: rolloutId, weight_bps: weightBps, segments, ...rest }) => ({
      ...rest,
      rolloutId,
      weightBps,
      segments: segments.map((each: Plain) => [each.start, each.end, each.revision, each.digest]),
    })),
  };
}

export async function readParquet(path: string): Promise<ReadBack> {
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file);
  const text = metadata.key_value_metadata?.find(({ key }) => key === "rollbook")?.value;
  const rows = (await parquetReadObjects({ file, metadata })) as Record<string, unknown>[];
  return {
    provenance: JSON.parse(text!),
    rows: rows.map((row) => {
      const starts = row.segment_start as bigint[];
      const segment = (name: string, i: number) => (row[name] as unknown[])[i];
      return {
        content: row.content,
        stream: Number(row.stream),
        rolloutId: row.rollout_id,
        group: row.group ?? null,
        weightBps: Number(row.weight_bps),
        samples: Number(row.samples),
        reward: row.reward,
        segments: starts.map((start, i) => [
          Number(start),
          Number(segment("segment_end", i)),
          segment("segment_revision", i),
          segment("segment_digest", i),
        ]),
        ...("ids" in row
          ? Object.fromEntries(TOKENS.map((name) => [name, Array.from(row[name] as number[])]))
          : { steps: parquetSteps(row as Record<string, unknown[]>) }),
      };
    }),
  };
}

function parquetSteps(row: Record<string, unknown[]>): Plain[] {
  const nested = (name: string, i: number) => row[name]![i] as unknown[];
  return row.chosen!.map((chosen, i) => ({
    chosen,
    probability: row.probability![i],
    reward: row.rewards![i],
    advantage: row.advantages![i],
    candidates: nested("candidate_ids", i).map((id, c) => ({
      id,
      probability: nested("candidate_probability", i)[c] ?? null,
      selectable: nested("candidate_selectable", i)[c],
    })),
  }));
}

type Flat = Map<string, (number | string)[]>;

export function readSafetensors(path: string): ReadBack {
  const bytes = readFileSync(path);
  const body = 8 + Number(bytes.readBigUInt64LE(0));
  const { __metadata__: metadata, ...tensors } = JSON.parse(bytes.toString("utf8", 8, body));
  const raw = new Map<string, Buffer>();
  const flat: Flat = new Map();
  let end = 0;
  for (const [name, { dtype, shape, data_offsets: at }] of Object.entries<{
    dtype: string;
    shape: number[];
    data_offsets: [number, number];
  }>(tensors)) {
    if (at[0] !== end) throw new Error(`${name} does not follow the tensor before it`);
    end = at[1];
    raw.set(name, bytes.subarray(body + at[0], body + at[1]));
    flat.set(name, numbersOf(dtype.toLowerCase(), raw.get(name)!, shape[0]!));
  }
  if (body + end !== bytes.length) throw new Error("the tensors do not end where the file ends");
  for (const [name, offsets] of [...flat]) {
    if (!name.endsWith(".offsets")) continue;
    const column = name.slice(0, -".offsets".length);
    const text = raw.get(`${column}.utf8`)!;
    const ends = offsets as number[];
    flat.set(
      column,
      ends.slice(1).map((to, i) => text.toString("utf8", ends[i], to)),
    );
  }
  const provenance = JSON.parse(metadata.rollbook);
  return { provenance, rows: rowsOf(flat, provenance) };
}

export function readNpz(path: string): ReadBack {
  const flat: Flat = new Map();
  let provenance: Plain = {};
  for (const [name, bytes] of unzip(readFileSync(path))) {
    const headerEnd = 10 + bytes.readUInt16LE(8);
    const header = bytes.toString("latin1", 10, headerEnd);
    const [, type, length] = /'descr': '([^']+)', 'fortran_order': False, 'shape': \((\d+),\)/.exec(header)!;
    const data = bytes.subarray(headerEnd);
    if (headerEnd % 64 !== 0 || !header.endsWith("\n")) throw new Error(`${name}: bad header`);
    if (name === "meta.json.npy") provenance = JSON.parse(data.toString("utf8"));
    else flat.set(name.replace(/\.npy$/, ""), npyValues(type!, data, Number(length)));
  }
  return { provenance, rows: rowsOf(flat, provenance) };
}

function npyValues(type: string, data: Buffer, length: number): (number | string)[] {
  const names: Record<string, string> = {
    "|u1": "u8",
    "<u4": "u32",
    "<i8": "i64",
    "<f4": "f32",
    "<f8": "f64",
  };
  if (names[type] !== undefined) return numbersOf(names[type], data, length);
  const width = Number(/^<U(\d+)$/.exec(type)![1]);
  if (data.length !== length * width * 4) throw new Error("a text array of the wrong size");
  return Array.from({ length }, (_, i) => {
    const points = Array.from({ length: width }, (_p, p) => data.readUInt32LE((i * width + p) * 4));
    return String.fromCodePoint(...points).replace(/\0+$/, "");
  });
}

/** The entries of an archive through its central directory, with CRC and ZIP64. */
function* unzip(bytes: Buffer): Generator<[string, Buffer]> {
  const end = bytes.length - 22;
  if (bytes.readUInt32LE(end) !== 0x06054b50) throw new Error("no end record");
  const is64 = bytes.readUInt32LE(end + 16) === 0xffff_ffff;
  const end64 = is64 ? Number(bytes.readBigUInt64LE(end - 20 + 8)) : 0;
  let at = is64 ? Number(bytes.readBigUInt64LE(end64 + 48)) : bytes.readUInt32LE(end + 16);
  for (let entry = bytes.readUInt16LE(end + 10); entry > 0; entry--) {
    const nameBytes = bytes.readUInt16LE(at + 28);
    const extra = at + 46 + nameBytes;
    const name = bytes.toString("utf8", at + 46, extra);
    const size = is64 ? Number(bytes.readBigUInt64LE(extra + 4)) : bytes.readUInt32LE(at + 24);
    const local = is64 ? Number(bytes.readBigUInt64LE(extra + 20)) : bytes.readUInt32LE(at + 42);
    const from = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const data = bytes.subarray(from, from + size);
    if (crc32(data) !== bytes.readUInt32LE(at + 16) || crc32(data) !== bytes.readUInt32LE(local + 14))
      throw new Error(`${name}: wrong CRC`);
    yield [name, data];
    at = extra + bytes.readUInt16LE(at + 30);
  }
}

function numbersOf(type: string, data: Buffer, length: number): number[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const readers: Record<string, [number, (at: number) => number]> = {
    u8: [1, (at) => view.getUint8(at)],
    u32: [4, (at) => view.getUint32(at, true)],
    i64: [8, (at) => Number(view.getBigInt64(at, true))],
    f32: [4, (at) => view.getFloat32(at, true)],
    f64: [8, (at) => view.getFloat64(at, true)],
  };
  const [width, read] = readers[type]!;
  if (data.length !== length * width) throw new Error(`${length} values in ${data.length} bytes`);
  return Array.from({ length }, (_, i) => read(i * width));
}

function rowsOf(flat: Flat, provenance: Plain): Plain[] {
  const sources = provenance.sources as { id: string; digest: string }[];
  const numbers = (name: string) => flat.get(name) as number[];
  const part = (name: string, start: number, length: number) => numbers(name).slice(start, start + length);
  return flat.get("content")!.map((content, r) => {
    const at = numbers("row_start")[r]!;
    const length = numbers("row_length")[r]!;
    const segments = numbers("segments_start")[r]!;
    return {
      content,
      stream: numbers("stream")[r],
      rolloutId: flat.get("rollout_id")![r],
      group: flat.get("group")![r] || null,
      weightBps: numbers("weight_bps")[r],
      samples: numbers("samples")[r],
      reward: numbers("reward")[r],
      segments: part("segment_source", segments, numbers("segments_length")[r]!).map((source, s) => [
        numbers("segment_start")[segments + s],
        numbers("segment_end")[segments + s],
        sources[source]!.id,
        sources[source]!.digest,
      ]),
      ...(flat.has("ids")
        ? Object.fromEntries(TOKENS.map((name) => [name, part(name, at, length)]))
        : { steps: Array.from({ length }, (_, i) => stepOf(flat, at + i)) }),
    };
  });
}

function stepOf(flat: Flat, i: number): Plain {
  const numbers = (name: string) => flat.get(name) as number[];
  const first = numbers("candidates_start")[i]!;
  return {
    chosen: numbers("chosen")[i],
    probability: numbers("probability")[i],
    reward: numbers("rewards")[i],
    advantage: numbers("advantages")[i],
    candidates: Array.from({ length: numbers("candidates_length")[i]! }, (_, c) => {
      const probability = numbers("candidate_probability")[first + c]!;
      return {
        id: flat.get("candidate_names")![numbers("candidate_ids")[first + c]!],
        probability: Number.isNaN(probability) ? null : probability,
        selectable: numbers("candidate_selectable")[first + c] === 1,
      };
    }),
  };
}
