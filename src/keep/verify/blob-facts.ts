/** What verification remembers of every blob: kind, size, and for columns whether their numbers are sound.
 *  Flat arrays behind one Map, because a book has many blobs. */
import { columnFrom, columnTag, type DType, firstNonFinite, ITEM_BYTES } from "../../base/arrays.ts";
import type { Digest } from "../../base/digest.ts";

const DTYPES = new Map<string, DType>(
  (Object.keys(ITEM_BYTES) as DType[]).map((dtype) => [columnTag(dtype), dtype]),
);

export function isColumnKind(kind: string): boolean {
  return DTYPES.has(kind);
}

/** A mask has about one run a turn; one with more than this is read again where it is needed. */
const MOST_RUNS = 64;

export interface BlobFact {
  kind: string;
  /** Values of a column, bytes of anything else. */
  length: number;
  finite: boolean;
  /** The highest value of an f32 column, or 0 if none is above 0. */
  highest: number;
  /** Number of ones in a u8 column of 0 and 1; -1 if it holds anything else. */
  ones: number;
}

export class BlobFacts {
  readonly #slots = new Map<Digest, number>();
  readonly #kinds: string[] = [];
  readonly #kindNumbers = new Map<string, number>();
  #kind = new Uint16Array(1024);
  #length = new Float64Array(1024);
  #ones = new Int32Array(1024);
  #finite = new Uint8Array(1024);
  #highest = new Float32Array(1024);
  readonly #runs = new Map<Digest, Uint32Array>();

  get size(): number {
    return this.#slots.size;
  }

  has(digest: Digest): boolean {
    return this.#slots.has(digest);
  }

  kindOf(digest: Digest): string | undefined {
    const slot = this.#slots.get(digest);
    return slot === undefined ? undefined : this.#kinds[this.#kind[slot]!];
  }

  get(digest: Digest): BlobFact | undefined {
    const slot = this.#slots.get(digest);
    if (slot === undefined) return undefined;
    return {
      kind: this.#kinds[this.#kind[slot]!]!,
      length: this.#length[slot]!,
      finite: this.#finite[slot] === 1,
      highest: this.#highest[slot]!,
      ones: this.#ones[slot]!,
    };
  }

  /** False if the blob is known already. */
  note(digest: Digest, kind: string, bytes: Uint8Array | undefined, byteLength: number): boolean {
    if (this.#slots.has(digest)) return false;
    const slot = this.#slots.size;
    this.#slots.set(digest, slot);
    if (slot >= this.#kind.length) this.#grow();
    this.#kind[slot] = this.#kindNumber(kind);
    const dtype = DTYPES.get(kind);
    this.#length[slot] = dtype === undefined ? byteLength : byteLength / ITEM_BYTES[dtype];
    this.#finite[slot] = 1;
    if (bytes === undefined || byteLength % (dtype === undefined ? 1 : ITEM_BYTES[dtype]) !== 0) return true;
    if (dtype === "f32") this.#noteFloats(slot, columnFrom("f32", bytes));
    else if (dtype === "f64") this.#finite[slot] = firstNonFinite(columnFrom(dtype, bytes)) < 0 ? 1 : 0;
    if (dtype === "u8") {
      this.#ones[slot] = countOnes(bytes);
      this.#noteRuns(digest, bytes);
    }
    return true;
  }

  /** Where the ones of a mask begin and end, in pairs; undefined for a column that changes too often to be kept. */
  runsOf(digest: Digest): Uint32Array | undefined {
    return this.#runs.get(digest);
  }

  #noteRuns(digest: Digest, bytes: Uint8Array): void {
    const edges: number[] = [];
    let wanted = 1;
    for (let at = bytes.indexOf(1); at >= 0; at = bytes.indexOf(wanted, at)) {
      edges.push(at);
      if (edges.length > 2 * MOST_RUNS) return;
      wanted = 1 - wanted;
    }
    if (edges.length % 2 === 1) edges.push(bytes.length);
    this.#runs.set(digest, Uint32Array.from(edges));
  }

  /** One pass over the bits: positive floats are ordered as their bits are, and only NaN and infinity have an
   *  exponent that carries into the sign. */
  #noteFloats(slot: number, values: Float32Array): void {
    const words = new Int32Array(values.buffer, values.byteOffset, values.length);
    let seen = 0;
    let top = 0;
    for (let i = 0; i < words.length; i++) {
      const word = words[i]!;
      seen |= (word & 0x7f800000) + 0x00800000;
      if (word > top) top = word;
    }
    this.#finite[slot] = seen >= 0 ? 1 : 0;
    bits[0] = top;
    this.#highest[slot] = float[0]!;
  }

  countByKind(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (let slot = 0; slot < this.#slots.size; slot++) {
      const kind = this.#kinds[this.#kind[slot]!]!;
      counts[kind] = (counts[kind] ?? 0) + 1;
    }
    return counts;
  }

  #kindNumber(kind: string): number {
    const known = this.#kindNumbers.get(kind);
    if (known !== undefined) return known;
    this.#kindNumbers.set(kind, this.#kinds.length);
    return this.#kinds.push(kind) - 1;
  }

  #grow(): void {
    const wider = <T extends Uint16Array | Float64Array | Float32Array | Int32Array | Uint8Array>(
      from: T,
    ): T => {
      const to = new (from.constructor as new (length: number) => T)(from.length * 2);
      to.set(from);
      return to;
    };
    this.#kind = wider(this.#kind);
    this.#length = wider(this.#length);
    this.#ones = wider(this.#ones);
    this.#finite = wider(this.#finite);
    this.#highest = wider(this.#highest);
  }
}

const bits = new Int32Array(1);
const float = new Float32Array(bits.buffer);

/** Four bytes at a time: the bytes of a word of zeros and ones add up without carrying into each other. */
function countOnes(bytes: Uint8Array): number {
  const whole = bytes.byteOffset % 4 === 0 ? bytes.length >> 2 : 0;
  const words = new Uint32Array(bytes.buffer, whole === 0 ? 0 : bytes.byteOffset, whole);
  let ones = 0;
  let any = 0;
  for (let i = 0; i < whole; i++) {
    const word = words[i]!;
    any |= word;
    ones += Math.imul(word, 0x01010101) >>> 24;
  }
  for (let i = whole * 4; i < bytes.length; i++) {
    any |= bytes[i]!;
    ones += bytes[i]!;
  }
  return (any & ~0x01010101) === 0 ? ones : -1;
}
