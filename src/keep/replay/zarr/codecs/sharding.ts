/** Shards (`sharding_indexed`): many chunks in one object, with an index of (offset, length) at its end.
 *  In: encoded chunks. Out: the bytes of a shard; and back, the place of each chunk. The crc32c of the index is
 *  verified. Does not read stores. */
import { CRC_BYTES, damaged, verifyCrc } from "./codecs.ts";
import { crc32c } from "./crc32c.ts";

const ENTRY_BYTES = 16;
/** Offset and length in the index entry of an absent chunk. */
const ABSENT = 2n ** 64n - 1n;

export function indexBytes(chunks: number): number {
  return chunks * ENTRY_BYTES + CRC_BYTES;
}

/** Collects the chunks of one shard after another in a reused buffer. */
export class ShardBuilder {
  readonly #capacity: number;
  #buffer = Buffer.allocUnsafe(0);
  #places: { offset: number; length: number }[] = [];
  #size = 0;

  constructor(chunksPerShard: number) {
    this.#capacity = chunksPerShard;
  }

  get chunks(): number {
    return this.#places.length;
  }

  get full(): boolean {
    return this.#places.length === this.#capacity;
  }

  /** Copies the encoded chunk directly behind the previous chunk of the shard. */
  add(encoded: Uint8Array): void {
    this.#reserve(encoded.length);
    this.#buffer.set(encoded, this.#size);
    this.#places.push({ offset: this.#size, length: encoded.length });
    this.#size += encoded.length;
  }

  /** The finished shard, valid until the next `add`; chunks that were not added are marked absent. */
  finish(): Uint8Array {
    const size = indexBytes(this.#capacity);
    this.#reserve(size);
    const index = this.#buffer.subarray(this.#size, this.#size + size);
    for (let i = 0; i < this.#capacity; i++) {
      const place = this.#places[i];
      index.writeBigUInt64LE(place === undefined ? ABSENT : BigInt(place.offset), i * ENTRY_BYTES);
      index.writeBigUInt64LE(place === undefined ? ABSENT : BigInt(place.length), i * ENTRY_BYTES + 8);
    }
    index.writeUInt32LE(crc32c(index.subarray(0, size - CRC_BYTES)), size - CRC_BYTES);
    const shard = this.#buffer.subarray(0, this.#size + size);
    this.#size = 0;
    this.#places = [];
    return shard;
  }

  #reserve(bytes: number): void {
    if (this.#size + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#size + bytes, 2 * this.#buffer.length));
    larger.set(this.#buffer.subarray(0, this.#size));
    this.#buffer = larger;
  }
}

/** Offset and length of each chunk of a shard, −1 for an absent chunk. */
export interface ShardIndex {
  offsets: Float64Array;
  lengths: Float64Array;
}

/** `bytes` are the last `indexBytes(chunks)` bytes of a shard of `shardBytes` bytes. */
export function parseShardIndex(bytes: Uint8Array, shardBytes: number, where: string): ShardIndex {
  const end = bytes.length - CRC_BYTES;
  const name = `the index of ${where}`;
  verifyCrc(bytes.subarray(0, end), bytes.subarray(end), { where: name });
  const view = new DataView(bytes.buffer, bytes.byteOffset, end);
  const chunks = end / ENTRY_BYTES;
  const index = { offsets: new Float64Array(chunks).fill(-1), lengths: new Float64Array(chunks).fill(-1) };
  for (let i = 0; i < chunks; i++) {
    const offset = view.getBigUint64(i * ENTRY_BYTES, true);
    const length = view.getBigUint64(i * ENTRY_BYTES + 8, true);
    if (offset === ABSENT && length === ABSENT) continue;
    if (offset + length > BigInt(shardBytes)) throw damaged(name, `places chunk ${i} beyond the end`);
    index.offsets[i] = Number(offset);
    index.lengths[i] = Number(length);
  }
  return index;
}
