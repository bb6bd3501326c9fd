/** The facts that verification keeps of every blob: kind, size, and for columns if their numbers are valid. Flat arrays
 *  behind one table of digests, because a book has many blobs. */
import {
  carry,
  columnFrom,
  columnTag,
  type Digest,
  DigestTable,
  type DType,
  firstNonFinite,
  ITEM_BYTES,
} from "../../base/index.ts";
import { type MaskRuns, scanMask } from "../../contract/index.ts";

const DTYPES = new Map<string, DType>(
  (Object.keys(ITEM_BYTES) as DType[]).map((dtype) => [columnTag(dtype), dtype]),
);

export function isColumnKind(kind: string): boolean {
  return DTYPES.has(kind);
}

export interface BlobFact {
  kind: string;
  /** Number of values of a column, number of bytes of any other blob. */
  length: number;
  finite: boolean;
  /** Highest value of an f32 column, or 0 if no value is above 0. */
  highest: number;
  /** Number of ones in a u8 column of 0 and 1; -1 if it holds anything else. */
  ones: number;
}

export interface NotedBlob {
  /** Hexadecimal digits of the digest. */
  hex: string;
  kind: string;
  /** Undefined for a large blob that was hashed in pieces; only for kinds whose bytes are not examined. */
  bytes: Uint8Array | undefined;
  byteLength: number;
}

interface KnownKind {
  kind: string;
  /** Type of a column; undefined for all other kinds. */
  dtype: DType | undefined;
  itemBytes: number;
}

export class BlobFacts {
  readonly #digests = new DigestTable();
  readonly #kinds: KnownKind[] = [];
  readonly #kindNumbers = new Map<string, number>();
  #kind = new Uint16Array(1024);
  #length = new Float64Array(1024);
  #ones = new Int32Array(1024);
  #finite = new Uint8Array(1024);
  #highest = new Float32Array(1024);
  /** Start and number of the edges of a mask in `#edges`; other columns have none. */
  #edgesAt = new Uint32Array(1024);
  #edgeCount = new Uint8Array(1024);
  #edges = new Uint32Array(1024);
  #edgesEnd = 0;

  get size(): number {
    return this.#digests.size;
  }

  has(digest: Digest): boolean {
    return this.#digests.find(digest) >= 0;
  }

  kindOf(digest: Digest): string | undefined {
    const slot = this.#digests.find(digest);
    return slot < 0 ? undefined : this.#kinds[this.#kind[slot]!]!.kind;
  }

  get(digest: Digest): BlobFact | undefined {
    const slot = this.#digests.find(digest);
    if (slot < 0) return undefined;
    return {
      kind: this.#kinds[this.#kind[slot]!]!.kind,
      length: this.#length[slot]!,
      finite: this.#finite[slot] === 1,
      highest: this.#highest[slot]!,
      ones: this.#ones[slot]!,
    };
  }

  /** False if the blob is already known. */
  note({ hex, kind, bytes, byteLength }: NotedBlob): boolean {
    const slot = this.#digests.size;
    if (this.#digests.addHex(hex) !== slot) return false;
    if (slot >= this.#kind.length) this.#grow();
    const number = this.#kindNumber(kind);
    const { dtype, itemBytes } = this.#kinds[number]!;
    this.#kind[slot] = number;
    this.#length[slot] = byteLength / itemBytes;
    this.#finite[slot] = 1;
    if (dtype === undefined || bytes === undefined || byteLength % itemBytes !== 0) return true;
    if (dtype === "f32") this.#noteFloats(slot, columnFrom("f32", bytes));
    else if (dtype === "f64") this.#finite[slot] = firstNonFinite(columnFrom(dtype, bytes)) < 0 ? 1 : 0;
    else if (dtype === "u8") this.#noteMask(slot, scanMask(bytes));
    return true;
  }

  /** Starts and ends of the runs of ones in a mask, in pairs; undefined without runs or with too many. */
  runsOf(digest: Digest): Uint32Array | undefined {
    const slot = this.#digests.find(digest);
    if (slot < 0 || this.#edgeCount[slot] === 0) return undefined;
    const at = this.#edgesAt[slot]!;
    return this.#edges.subarray(at, at + this.#edgeCount[slot]!);
  }

  #noteMask(slot: number, { ones, edges }: MaskRuns): void {
    this.#ones[slot] = ones;
    if (edges === undefined) return;
    if (this.#edgesEnd + edges.length > this.#edges.length) this.#edges = wider(this.#edges);
    this.#edgesAt[slot] = this.#edgesEnd;
    this.#edgeCount[slot] = edges.length;
    for (let i = 0; i < edges.length; i++) this.#edges[this.#edgesEnd++] = edges[i]!;
  }

  #noteFloats(slot: number, values: Float32Array): void {
    const words = new Int32Array(values.buffer, values.byteOffset, values.length);
    const { carried, top } = scanFloats(words);
    this.#finite[slot] = carried >= 0 ? 1 : 0;
    bits[0] = top;
    this.#highest[slot] = float[0]!;
  }

  countByKind(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (let slot = 0; slot < this.size; slot++) {
      const { kind } = this.#kinds[this.#kind[slot]!]!;
      counts[kind] = (counts[kind] ?? 0) + 1;
    }
    return counts;
  }

  #kindNumber(kind: string): number {
    const known = this.#kindNumbers.get(kind);
    if (known !== undefined) return known;
    const dtype = DTYPES.get(kind);
    this.#kindNumbers.set(kind, this.#kinds.length);
    return this.#kinds.push({ kind, dtype, itemBytes: dtype === undefined ? 1 : ITEM_BYTES[dtype] }) - 1;
  }

  #grow(): void {
    this.#kind = wider(this.#kind);
    this.#length = wider(this.#length);
    this.#ones = wider(this.#ones);
    this.#finite = wider(this.#finite);
    this.#highest = wider(this.#highest);
    this.#edgesAt = wider(this.#edgesAt);
    this.#edgeCount = wider(this.#edgeCount);
  }
}

const bits = new Int32Array(1);
const float = new Float32Array(bits.buffer);

/** One pass over the bits of floats. `carried` is negative if a value is NaN or infinite: only their exponent carries
 *  into the sign. `top` holds the bits of the highest value above 0: positive floats are ordered as their bits are.
 *  Four values per step take half the time of one value per step. */
function scanFloats(words: Int32Array): { carried: number; top: number } {
  let carried = 0;
  let top = 0;
  let i = 0;
  for (const whole = words.length & ~3; i < whole; i += 4) {
    const a = words[i]!;
    const b = words[i + 1]!;
    const c = words[i + 2]!;
    const d = words[i + 3]!;
    carried |= carry(a) | carry(b) | carry(c) | carry(d);
    if (a > top) top = a;
    if (b > top) top = b;
    if (c > top) top = c;
    if (d > top) top = d;
  }
  for (; i < words.length; i++) {
    carried |= carry(words[i]!);
    top = Math.max(top, words[i]!);
  }
  return { carried, top };
}

/** Copy of the array with twice the length. */
function wider<T extends Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array | Float64Array>(
  from: T,
): T {
  const to = new (from.constructor as new (length: number) => T)(from.length * 2);
  to.set(from);
  return to;
}
