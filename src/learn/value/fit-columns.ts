/** Chooses the features of a value policy from the data, and learns their scales.
 *  In: training rows. Out: the spec, the fitted columns, and the rows as sparse vectors. Every field and every category
 *  is kept. A word is a column if at least two rows have it. Deterministic. */
import { log } from "../../base/index.ts";
import {
  denseSizeOf,
  embeddingAt,
  type FittedColumns,
  makeValueReader,
  PROMPT_MEASURES,
  squash,
  TermReader,
  type ValueSpec,
} from "../../policy/index.ts";
import { type DecisionRow, gatherRows, type SparseRows } from "../rows/index.ts";

export interface EncodedRows {
  readonly spec: ValueSpec;
  readonly columns: FittedColumns;
  readonly rows: SparseRows;
}

/** `shared`: pairs of words are scaled together with the words. `own`: they are scaled separately. */
export type PairLength = "shared" | "own";

/** Most words kept over all prompts, without pairs. It bounds the memory of a large log's vectors. */
const WORDS_KEPT = 12_000_000;
const MOST_WORDS = 2048;
const LEAST_BUCKETS = 1 << 14;
const MOST_BUCKETS = 1 << 24;
/** Buckets per possible term, so that few terms share a bucket. */
const ROOM = 4;
/** Most weights over all candidates. Beyond it the rarest words are left out, to keep the solver's vectors small. */
const MOST_WEIGHTS = 3_000_000;
/** With fewer rows, a word that occurs once is a column too. */
const FEW_ROWS = 200;
/** Lengths of the prompt's measures and of the numbers, relative to words of length 1. */
const MEASURE_SCALE = 0.3;
const NUMBER_SCALE = 2;
const EMBEDDING_SCALE = 2;
const MOST_DEVIATIONS = 4;
/** A number whose range exceeds this many deviations has a long tail. */
const LONG_TAIL = 20;

const BEYOND_ASCII = /[^\u0000-\u007f]/;

/** Buckets by the amount of text. Every field that occurs: numbers as numbers, other values as categories. */
export function deriveValueSpec(rows: readonly DecisionRow[], embedding?: ValueSpec["embedding"]): ValueSpec {
  const kinds = new Map<string, "number" | "category">();
  let chars = 0;
  let foreign = false;
  for (const { context } of rows) {
    chars += context.prompt.length;
    foreign ||= BEYOND_ASCII.test(context.prompt);
    for (const [name, value] of Object.entries(context.fields)) {
      if (typeof value === "string") kinds.set(name, "category");
      else if (!kinds.has(name)) kinds.set(name, "number");
    }
  }
  // A word with its space takes about five characters; pairs double the terms.
  const terms = (2 * chars) / 5 + rows.length * kinds.size;
  return {
    schema: "rollbook.feature-spec.v2",
    wordBuckets: powerOfTwo(ROOM * terms),
    maxWords: Math.max(64, Math.min(MOST_WORDS, Math.floor(WORDS_KEPT / Math.max(1, rows.length)))),
    ...(foreign ? { letters: "unicode" as const } : {}),
    fields: [...kinds].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, kind]) => ({ name, kind })),
    ...(embedding === undefined ? {} : { embedding }),
  };
}

export function encodeRows(
  items: readonly DecisionRow[],
  spec: ValueSpec,
  pairLength: PairLength = "shared",
): EncodedRows {
  const { columns, entries } = fitColumns(items, spec, pairLength);
  const reader = makeValueReader(spec, columns);
  const rows = gatherRows(items, reader.size, (row) => reader.context(row.context), entries);
  return { spec, columns, rows };
}

/** Flags on the count of an id: it is a word, or only a pair of words. Count and flags share one array, because a large
 *  log has 16 million ids. */
const WORD = 2 ** 31;
const PAIR = 2 ** 30;
const rowsOf = (mark: number) => mark % PAIR;

function fitColumns(
  items: readonly DecisionRow[],
  spec: ValueSpec,
  pairLength: PairLength,
): { columns: FittedColumns; entries: number } {
  const terms = new TermReader(spec);
  const marks = new Uint32Array(spec.wordBuckets);
  const dense = new DenseMoments(spec);
  for (const { context } of items) {
    terms.read(context);
    dense.add(terms.dense);
    countTerms(terms, marks);
  }
  const arms = new Set<string>();
  for (const { candidates } of items) for (const { id } of candidates) arms.add(id);
  const least = leastRows(marks, { rows: items.length, most: MOST_WEIGHTS / Math.max(1, arms.size) });
  const ids: number[] = [];
  let entries = items.length * denseSizeOf(spec);
  marks.forEach((mark, id) => {
    if (rowsOf(mark) < (mark >= PAIR ? least : 1)) return;
    ids.push(id);
    entries += rowsOf(mark);
  });
  const idfOf = (mark: number) => {
    if (mark < PAIR) return 0;
    const idf = 1 + log((1 + items.length) / (1 + rowsOf(mark)));
    return mark < WORD && pairLength === "own" ? -idf : idf;
  };
  const columns = {
    ids: Uint32Array.from(ids),
    idf: Float64Array.from(ids, (id) => idfOf(marks[id]!)),
    ...dense.fitted(),
  };
  return { columns, entries };
}

/** Counts every id of a question once, and sets its flag. */
function countTerms({ ids, words, count }: TermReader, marks: Uint32Array): void {
  for (let t = 0; t < words; t++) {
    const isPair = t > 0 && t % 2 === 0;
    marks[ids[t]!] = marks[ids[t]!]! | (isPair ? PAIR : WORD);
  }
  const sorted = ids.slice(0, count).sort();
  for (let t = 0; t < count; t++)
    if (t === 0 || sorted[t] !== sorted[t - 1]) marks[sorted[t]!] = marks[sorted[t]!]! + 1;
}

/** The number of rows in which a word must occur: two, or more if there would be more than `most` columns. */
function leastRows(marks: Uint32Array, { rows, most }: { rows: number; most: number }): number {
  const MOST_COUNTED = 64;
  const byCount = new Float64Array(MOST_COUNTED + 1);
  for (const mark of marks) if (mark >= PAIR) byCount[Math.min(rowsOf(mark), MOST_COUNTED)]!++;
  let least = rows < FEW_ROWS ? 1 : 2;
  let columns = byCount.subarray(least).reduce((sum, each) => sum + each, 0);
  while (columns > most && least < MOST_COUNTED) columns -= byCount[least++]!;
  return least;
}

/** Mean, deviation and range of every dense value, plain and squashed. Missing values are not counted. */
class DenseMoments {
  readonly #spec: ValueSpec;
  readonly #count: Float64Array;
  readonly #plain: Moments;
  readonly #squashed: Moments;

  constructor(spec: ValueSpec) {
    const size = denseSizeOf(spec);
    this.#spec = spec;
    this.#count = new Float64Array(size);
    this.#plain = new Moments(size);
    this.#squashed = new Moments(size);
  }

  add(values: Float64Array): void {
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (Number.isNaN(value)) continue;
      this.#count[i] = this.#count[i]! + 1;
      this.#plain.add(i, value, this.#count[i]!);
      this.#squashed.add(i, squash(value), this.#count[i]!);
    }
  }

  fitted(): Pick<FittedColumns, "centre" | "factor" | "limit" | "squashed"> {
    const size = this.#count.length;
    const out = {
      centre: new Float64Array(size),
      factor: new Float64Array(size),
      limit: new Float64Array(size),
      squashed: new Uint8Array(size),
    };
    for (let i = 0; i < size; i++) {
      const plain = this.#plain.at(i, this.#count[i]!);
      const long = plain.deviation > 0 && plain.range > LONG_TAIL * plain.deviation;
      const { mean, deviation } = long ? this.#squashed.at(i, this.#count[i]!) : plain;
      const scale = this.#scaleOf(i);
      out.squashed[i] = long ? 1 : 0;
      out.centre[i] = mean;
      out.factor[i] = deviation > 0 ? scale / deviation : 0;
      out.limit[i] = MOST_DEVIATIONS * scale;
    }
    return out;
  }

  /** Together the numbers have about the length of a few categories, independent of their count. */
  #scaleOf(i: number): number {
    if (i < PROMPT_MEASURES) return MEASURE_SCALE;
    const { embedding } = this.#spec;
    if (embedding !== undefined && i >= embeddingAt(this.#spec))
      return EMBEDDING_SCALE / Math.sqrt(embedding.size);
    const numbers = this.#spec.fields.filter(({ kind }) => kind === "number").length;
    return NUMBER_SCALE / Math.sqrt(Math.max(4, numbers));
  }
}

/** Welford's running mean and variance, and the range. */
class Moments {
  readonly #mean: Float64Array;
  readonly #squares: Float64Array;
  readonly #low: Float64Array;
  readonly #high: Float64Array;

  constructor(size: number) {
    this.#mean = new Float64Array(size);
    this.#squares = new Float64Array(size);
    this.#low = new Float64Array(size).fill(Number.POSITIVE_INFINITY);
    this.#high = new Float64Array(size).fill(Number.NEGATIVE_INFINITY);
  }

  add(i: number, value: number, count: number): void {
    const before = value - this.#mean[i]!;
    this.#mean[i] = this.#mean[i]! + before / count;
    this.#squares[i] = this.#squares[i]! + before * (value - this.#mean[i]!);
    if (value < this.#low[i]!) this.#low[i] = value;
    if (value > this.#high[i]!) this.#high[i] = value;
  }

  at(i: number, count: number): { mean: number; deviation: number; range: number } {
    const range = count === 0 ? 0 : this.#high[i]! - this.#low[i]!;
    // A constant has deviation 0, even if rounding gives another value.
    const deviation = range === 0 ? 0 : Math.sqrt(this.#squares[i]! / count);
    return { mean: this.#mean[i]!, deviation, range };
  }
}

function powerOfTwo(wanted: number): number {
  let size = LEAST_BUCKETS;
  while (size < wanted && size < MOST_BUCKETS) size *= 2;
  return size;
}
