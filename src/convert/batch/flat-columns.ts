/** The rows of a batch as flat columns, for formats that state the size of every array before its values.
 *  The first pass (`planColumns`) measures and reads only shard records. The second (`flatBlocks`) yields the values in
 *  blocks. Memory: one shard, and the distinct names of candidates. */
import { type Column, type DType, ITEM_BYTES } from "../../base/index.ts";
import type { BatchRow } from "../../contract/index.ts";
import type { ReadableBatch, StepShardColumns, TokenShardColumns } from "../../keep/batch/index.ts";

export type NumberType = DType | "i64";

export type FlatColumn =
  | { readonly kind: "numbers"; readonly name: string; readonly type: NumberType; readonly length: number }
  | {
      readonly kind: "text";
      readonly name: string;
      readonly length: number;
      /** Number of code points in the longest text. */
      readonly widest: number;
      readonly utf8Bytes: number;
    };

type NumberBlock = { readonly name: string; readonly values: Column | BigInt64Array };
type TextBlock = { readonly name: string; readonly texts: readonly string[] };

interface FlatPlan {
  readonly columns: readonly FlatColumn[];
  /** Index of each candidate name. Empty at token level. */
  readonly candidateNames: ReadonlyMap<string, number>;
}

export function itemBytes(type: NumberType): number {
  return type === "i64" ? 8 : ITEM_BYTES[type];
}

/** The little-endian bytes of a block, shared and not copied. */
export function bytesOfBlock({ values }: NumberBlock): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

const ROW_TEXTS = {
  content: (row: BatchRow): string => row.content,
  rollout_id: (row: BatchRow): string => row.rolloutId,
  /** An id is never empty, so the empty text means no group. */
  group: (row: BatchRow): string => row.group ?? "",
};

const ROW_NUMBERS: Readonly<Record<string, NumberType>> = {
  stream: "i64",
  weight_bps: "i64",
  samples: "i64",
  reward: "f64",
  row_start: "i64",
  row_length: "i64",
  segments_start: "i64",
  segments_length: "i64",
};
const SEGMENT_NUMBERS = { segment_start: "i64", segment_end: "i64", segment_source: "i64" } as const;
const TOKEN_NUMBERS = {
  ids: "u32",
  logprobs: "f32",
  mask: "u8",
  turns: "u32",
  rewards: "f32",
  advantages: "f32",
} as const;
const STEP_NUMBERS = {
  chosen: "u32",
  probability: "f64",
  rewards: "f64",
  advantages: "f64",
  candidates_start: "i64",
  candidates_length: "i64",
} as const;
const CANDIDATE_NUMBERS = {
  candidate_ids: "u32",
  candidate_probability: "f64",
  candidate_selectable: "u8",
} as const;

/** Number of rows per block of texts and offsets. The texts of a shard may be larger than its numbers. */
const ROWS_AT_A_TIME = 8192;

export async function planColumns(batch: ReadableBatch): Promise<FlatPlan> {
  const texts = Object.entries(ROW_TEXTS).map(([name, textOf]) => ({ textOf, size: new TextSize(name) }));
  const candidateNames = new Map<string, number>();
  const totals = { rows: 0, segments: 0, places: 0, candidates: 0 };
  for await (const shard of batch.shards()) {
    for (const row of shard.rows) {
      totals.segments += row.segments.length;
      totals.places += row.length;
      for (const { textOf, size } of texts) size.add(textOf(row));
    }
    totals.rows += shard.rows.length;
    if (!("candidates" in shard)) continue;
    totals.candidates += shard.candidateCount;
    for (const name of shard.candidates)
      if (!candidateNames.has(name)) candidateNames.set(name, candidateNames.size);
  }
  const columns: FlatColumn[] = [
    ...texts.map(({ size }) => size.column()),
    ...numbers(ROW_NUMBERS, totals.rows),
    ...numbers(SEGMENT_NUMBERS, totals.segments),
    ...numbers(batch.level === "token" ? TOKEN_NUMBERS : STEP_NUMBERS, totals.places),
  ];
  if (batch.level === "step") {
    const names = new TextSize("candidate_names");
    for (const name of candidateNames.keys()) names.add(name);
    columns.push(...numbers(CANDIDATE_NUMBERS, totals.candidates), names.column());
  }
  return { columns, candidateNames };
}

/** Yields every value of every column. Blocks of one column come in order. */
export async function* flatBlocks(
  batch: ReadableBatch,
  plan: FlatPlan,
): AsyncGenerator<NumberBlock | TextBlock> {
  const before: Offsets = { places: 0, segments: 0, candidates: 0 };
  if (batch.level === "token") {
    for await (const shard of batch.shards()) {
      yield* rowBlocks(shard.rows, before);
      yield* tokenBlocks(await shard.columns());
    }
    return;
  }
  yield* chunked("candidate_names", [...plan.candidateNames.keys()]);
  for await (const shard of batch.shards()) {
    yield* rowBlocks(shard.rows, before);
    const numberOf = Uint32Array.from(shard.candidates, (name) => plan.candidateNames.get(name)!);
    yield* stepBlocks(await shard.columns(), numberOf, before);
  }
}

interface Offsets {
  places: number;
  segments: number;
  candidates: number;
}

function* rowBlocks(rows: readonly BatchRow[], before: Offsets): Generator<NumberBlock | TextBlock> {
  for (let at = 0; at < rows.length; at += ROWS_AT_A_TIME) {
    const some = rows.slice(at, at + ROWS_AT_A_TIME);
    for (const [name, textOf] of Object.entries(ROW_TEXTS)) yield { name, texts: some.map(textOf) };
    yield { name: "stream", values: i64(some.map((row) => row.stream)) };
    yield { name: "weight_bps", values: i64(some.map((row) => row.weightBps)) };
    yield { name: "samples", values: i64(some.map((row) => row.samples)) };
    yield { name: "reward", values: Float64Array.from(some, (row) => row.reward) };
    const lengths = some.map((row) => row.length);
    yield { name: "row_start", values: i64(startsOf(lengths, before, "places")) };
    yield { name: "row_length", values: i64(lengths) };
    const counts = some.map((row) => row.segments.length);
    yield { name: "segments_start", values: i64(startsOf(counts, before, "segments")) };
    yield { name: "segments_length", values: i64(counts) };
    const segments = some.flatMap((row) => row.segments);
    yield { name: "segment_start", values: i64(segments.map(([start]) => start)) };
    yield { name: "segment_end", values: i64(segments.map(([, end]) => end)) };
    yield { name: "segment_source", values: i64(segments.map(([, , source]) => source)) };
  }
}

function* tokenBlocks(columns: TokenShardColumns): Generator<NumberBlock> {
  for (const name of Object.keys(TOKEN_NUMBERS) as (keyof typeof TOKEN_NUMBERS)[])
    yield { name, values: columns[name] };
}

function* stepBlocks(
  columns: StepShardColumns,
  numberOf: Uint32Array,
  before: Offsets,
): Generator<NumberBlock> {
  for (const name of ["chosen", "probability", "rewards", "advantages"] as const)
    yield { name, values: columns[name] };
  const counts = columns.candidateCounts;
  yield { name: "candidates_start", values: i64(startsOf(counts, before, "candidates")) };
  yield { name: "candidates_length", values: i64(counts) };
  yield { name: "candidate_ids", values: columns.candidateIds.map((id) => numberOf[id]!) };
  yield { name: "candidate_probability", values: columns.candidateProbability };
  yield { name: "candidate_selectable", values: columns.candidateSelectable };
}

/** Start of each part, for parts of these lengths after the earlier parts. */
function startsOf(lengths: ArrayLike<number>, before: Offsets, name: keyof Offsets): number[] {
  return Array.from(lengths, (length) => {
    const start = before[name];
    before[name] += length;
    return start;
  });
}

function* chunked(name: string, texts: readonly string[]): Generator<TextBlock> {
  for (let at = 0; at < texts.length; at += ROWS_AT_A_TIME)
    yield { name, texts: texts.slice(at, at + ROWS_AT_A_TIME) };
}

function numbers(types: Readonly<Record<string, NumberType>>, length: number): FlatColumn[] {
  return Object.entries(types).map(([name, type]) => ({ kind: "numbers", name, type, length }));
}

function i64(values: ArrayLike<number>): BigInt64Array {
  return BigInt64Array.from({ length: values.length }, (_, i) => BigInt(values[i]!));
}

class TextSize {
  readonly #name: string;
  #length = 0;
  #widest = 0;
  #utf8Bytes = 0;

  constructor(name: string) {
    this.#name = name;
  }

  add(text: string): void {
    this.#length++;
    this.#utf8Bytes += Buffer.byteLength(text);
    // A text has at most as many code points as UTF-16 units.
    if (text.length > this.#widest) this.#widest = Math.max(this.#widest, [...text].length);
  }

  column(): FlatColumn {
    return {
      kind: "text",
      name: this.#name,
      length: this.#length,
      widest: this.#widest,
      utf8Bytes: this.#utf8Bytes,
    };
  }
}
