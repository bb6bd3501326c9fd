/** Maps a digest to a place compactly: about 55 bytes per blob at any count.
 *  In: digests with places. Out: the place of a digest. Keeps the latest place of each digest. Removes no single entry;
 *  `clear` the index and build it again. Places are stored in chunks, so growth copies no place. */
import { type Digest, DigestTable } from "../../base/index.ts";

export interface BlobPlace {
  /** Number of the file in the caller's table. */
  readonly file: number;
  /** Offset of the entry in its file; a multiple of 8. */
  readonly offset: number;
  /** Length of the entry with header and padding. */
  readonly bytes: number;
  /** True if the entry stands for a blob in a separate file. */
  readonly large: boolean;
}

const CHUNK = 1 << 12;
const WORDS = 3; // file, offset / 8, bytes / 8 with LARGE_BIT
const LARGE_BIT = 2 ** 31;

export class BlobIndex {
  readonly #digests = new DigestTable();
  #chunks: Uint32Array[] = [];

  get size(): number {
    return this.#digests.size;
  }

  /** Memory that the index uses, in bytes. */
  get byteLength(): number {
    return this.#digests.byteLength + this.#chunks.length * CHUNK * WORDS * 4;
  }

  set(digest: Digest, place: BlobPlace): void {
    const entry = this.#digests.add(digest);
    if (entry === this.#chunks.length * CHUNK) this.#chunks.push(new Uint32Array(CHUNK * WORDS));
    const chunk = this.#chunk(entry);
    const at = (entry % CHUNK) * WORDS;
    chunk[at] = place.file;
    chunk[at + 1] = place.offset / 8;
    chunk[at + 2] = place.bytes / 8 + (place.large ? LARGE_BIT : 0);
  }

  get(digest: Digest): BlobPlace | undefined {
    const entry = this.#digests.find(digest);
    if (entry < 0) return undefined;
    const chunk = this.#chunk(entry);
    const at = (entry % CHUNK) * WORDS;
    const length = chunk[at + 2]!;
    const large = length >= LARGE_BIT;
    return {
      file: chunk[at]!,
      offset: chunk[at + 1]! * 8,
      bytes: (large ? length - LARGE_BIT : length) * 8,
      large,
    };
  }

  has(digest: Digest): boolean {
    return this.#digests.find(digest) >= 0;
  }

  clear(): void {
    this.#chunks = [];
    this.#digests.clear();
  }

  #chunk(entry: number): Uint32Array {
    return this.#chunks[Math.floor(entry / CHUNK)]!;
  }
}
