/** The features of value policies (feature spec v2). The columns fitted in training decide how a question is read.
 *  In: a spec and the fitted columns, then contexts. Out: sparse vectors. Exact arithmetic only: one question, one
 *  vector. Words, pairs of words and categories are hashed into one space of `wordBuckets`. A column exists if training
 *  saw it often enough. Words weigh (1 + ln count)·idf, scaled to length 1. Pairs are weighted the same way, and scaled
 *  together with the words or separately. Numbers and prompt measures are standardised. The vectors are scratch space
 *  of the reader, valid until its next call. */
import { log, RollbookError } from "../../base/index.ts";
import { type DecisionContext, vectorFor } from "../decision.ts";
import type { ValueSpec } from "../feature-spec.ts";
import { type GrowingVector, promptMeasures, type SparseVector, squash } from "../features.ts";
import { hashText, mix, scanPrompt } from "../scan-prompt.ts";

/** Number of measures of a prompt, without the bias. */
export const PROMPT_MEASURES = 14;

/** The values that training fixed. `ids`: the hashed ids that are columns, ascending. `idf`: their scale; 0 is a
 *  category, which weighs 1; a negative value is minus the scale of a pair in a separately scaled group.
 *  Each dense value has a centre, a factor and a squashing flag. */
export interface FittedColumns {
  readonly ids: Uint32Array;
  readonly idf: Float64Array;
  readonly centre: Float64Array;
  readonly factor: Float64Array;
  /** Values beyond ±limit are clipped, so that one outlier does not decide. */
  readonly limit: Float64Array;
  /** 1: apply sign(x)·ln(1 + |x|) first, for values with long tails. */
  readonly squashed: Uint8Array;
}

/** Number of dense places: the prompt's measures, value and presence of every number field, then the embedding. */
export function denseSizeOf(spec: ValueSpec): number {
  return embeddingAt(spec) + (spec.embedding?.size ?? 0);
}

/** The first place of the embedding. */
export function embeddingAt({ fields }: ValueSpec): number {
  return PROMPT_MEASURES + 2 * fields.filter(({ kind }) => kind === "number").length;
}

export interface ValueReader {
  readonly spec: ValueSpec;
  readonly size: number;
  context(context: DecisionContext): SparseVector;
}

export function makeValueReader(spec: ValueSpec, columns: FittedColumns): ValueReader {
  const terms = new TermReader(spec);
  const dense = denseSizeOf(spec);
  if (columns.centre.length !== dense || columns.idf.length !== columns.ids.length)
    throw new RollbookError(
      "bad-checkpoint",
      { dense, given: columns.centre.length },
      `the feature spec has ${dense} dense places, the checkpoint ${columns.centre.length}. Train again.`,
    );
  const table = new ColumnTable(columns.ids);
  const capacity = dense + terms.capacity;
  const vector = { indices: new Int32Array(capacity), values: new Float64Array(capacity), count: 0 };
  const slots = new Int32Array(columns.ids.length);
  return {
    spec,
    size: dense + columns.ids.length,
    context(context) {
      terms.read(context);
      vector.count = 0;
      for (let i = 0; i < dense; i++) {
        const raw = terms.dense[i]!;
        if (Number.isNaN(raw)) continue;
        const value = standardised(raw, columns, i);
        if (value === 0) continue;
        vector.indices[vector.count] = i;
        vector.values[vector.count++] = value;
      }
      addColumns(vector, { terms, table, slots, idf: columns.idf, at: dense });
      return vector;
    },
  };
}

function standardised(raw: number, { centre, factor, limit, squashed }: FittedColumns, i: number): number {
  const scale = factor[i]!;
  if (scale === 0) return 0;
  const value = ((squashed[i] === 1 ? squash(raw) : raw) - centre[i]!) * scale;
  return Math.min(limit[i]!, Math.max(-limit[i]!, value));
}

/** Scales words together to length 1, and columns with idf below 0 (pairs) likewise. Categories weigh 1 each. */
function addColumns(
  vector: GrowingVector,
  options: { terms: TermReader; table: ColumnTable; slots: Int32Array; idf: Float64Array; at: number },
): void {
  const { terms, table, slots, idf, at } = options;
  const { indices, values } = vector;
  const from = vector.count;
  let count = from;
  for (let t = 0; t < terms.count; t++) {
    const column = table.find(terms.ids[t]!);
    if (column < 0) continue;
    const slot = slots[column]!;
    if (slot > 0) values[slot - 1] = values[slot - 1]! + 1;
    else {
      indices[count] = at + column;
      values[count++] = 1;
      slots[column] = count;
    }
  }
  let [words, pairs] = [0, 0];
  for (let i = from; i < count; i++) {
    const column = indices[i]! - at;
    slots[column] = 0;
    const scale = idf[column]!;
    if (scale === 0) {
      values[i] = 1;
      continue;
    }
    const tally = values[i]!;
    const value = (tally === 1 ? 1 : 1 + log(tally)) * Math.abs(scale);
    values[i] = value;
    if (scale > 0) words += value * value;
    else pairs += value * value;
  }
  const wordScale = words === 0 ? 0 : 1 / Math.sqrt(words);
  const pairScale = pairs === 0 ? 0 : 1 / Math.sqrt(pairs);
  for (let i = from; i < count; i++) {
    const scale = idf[indices[i]! - at]!;
    if (scale !== 0) values[i] = values[i]! * (scale > 0 ? wordScale : pairScale);
  }
  vector.count = count;
}

/** The raw terms of a question: hashed ids of words, pairs and categories, and the dense values. Training counts the
 *  terms; a reader looks up their columns. */
export class TermReader {
  readonly ids: Int32Array;
  /** Number of ids that are words or pairs; they come first. The order is a word, then every next word with the pair
   *  that it ends. The other ids are categories. */
  words = 0;
  count = 0;
  /** NaN: missing. */
  readonly dense: Float64Array;
  readonly capacity: number;
  readonly #spec: ValueSpec;
  readonly #hashes: Int32Array;
  readonly #fieldSeeds: readonly number[];

  constructor(spec: ValueSpec) {
    this.#spec = spec;
    this.#hashes = new Int32Array(spec.maxWords);
    this.capacity = 2 * spec.maxWords + spec.fields.length;
    this.ids = new Int32Array(this.capacity);
    this.dense = new Float64Array(denseSizeOf(spec));
    this.#fieldSeeds = spec.fields.map(({ name }) => hashText(`field ${name}`));
  }

  read(context: DecisionContext): void {
    const { prompt, fields } = context;
    const { ids, dense } = this;
    const hashes = this.#hashes;
    const mask = this.#spec.wordBuckets - 1;
    const counts = scanPrompt(prompt, hashes, { unicode: this.#spec.letters === "unicode" });
    promptMeasures(counts, dense);
    const words = Math.min(counts.words, hashes.length);
    let count = 0;
    for (let i = 0; i < words; i++) {
      ids[count++] = mix(hashes[i]!) & mask;
      if (i > 0) ids[count++] = mix(Math.imul(hashes[i - 1]!, 31) ^ hashes[i]! ^ 0x5bd1e995) & mask;
    }
    this.words = count;
    let at = PROMPT_MEASURES;
    this.#spec.fields.forEach((field, f) => {
      const value = fields[field.name];
      if (field.kind === "category") {
        if (value !== undefined) ids[count++] = mix(hashText(String(value)) ^ this.#fieldSeeds[f]!) & mask;
        return;
      }
      const number = typeof value === "boolean" ? Number(value) : value;
      if (number !== undefined && (typeof number !== "number" || !Number.isFinite(number)))
        throw badNumber(field.name, value);
      dense[at++] = number ?? Number.NaN;
      dense[at++] = number === undefined ? 0 : 1;
    });
    this.count = count;
    if (this.#spec.embedding !== undefined) this.#readVector(this.#spec.embedding, context);
  }

  /** An empty prompt has no embedding: its places count as missing. */
  #readVector({ model, size }: NonNullable<ValueSpec["embedding"]>, context: DecisionContext): void {
    const vector = vectorFor(context, model);
    const at = embeddingAt(this.#spec);
    if (context.prompt === "") this.dense.fill(Number.NaN, at);
    else if (vector === undefined) throw noEmbedding(model);
    else if (vector.length !== size)
      throw new RollbookError(
        "bad-embedding",
        { model, expected: size, actual: vector.length },
        `the embedding has ${vector.length} numbers, the policy was trained on ${size} of ${model}. Use the same model, or train again.`,
      );
    else this.dense.set(vector, at);
  }
}

function noEmbedding(model: string): RollbookError {
  return new RollbookError(
    "no-embedding",
    { model },
    `the policy reads embeddings of ${model}, and this prompt has none. Name the endpoint that makes them: --embeddings for commands, router.embeddings for a router, \`embedding\` of the context in a program.`,
  );
}

/** Open addressing over the ids. Returns −1 if an id is not a column. */
class ColumnTable {
  readonly #keys: Int32Array;
  readonly #columns: Int32Array;
  readonly #mask: number;

  constructor(ids: Uint32Array) {
    let room = 16;
    while (room < 2 * ids.length) room *= 2;
    this.#mask = room - 1;
    this.#keys = new Int32Array(room).fill(-1);
    this.#columns = new Int32Array(room);
    ids.forEach((id, column) => {
      let at = mix(id) & this.#mask;
      while (this.#keys[at] !== -1) at = (at + 1) & this.#mask;
      this.#keys[at] = id;
      this.#columns[at] = column;
    });
  }

  find(id: number): number {
    let at = mix(id) & this.#mask;
    for (;;) {
      const key = this.#keys[at]!;
      if (key === id) return this.#columns[at]!;
      if (key === -1) return -1;
      at = (at + 1) & this.#mask;
    }
  }
}

function badNumber(name: string, value: unknown): RollbookError {
  return new RollbookError(
    "bad-field",
    { name, value: String(value) },
    `field ${name} is ${JSON.stringify(value) ?? String(value)}; the feature spec says it is a finite number.`,
  );
}
