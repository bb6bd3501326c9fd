/** Reads a pack from end to end, every byte checked, at the speed of hashing.
 *  In: a pack file. Out: entries and damage, in file order. Reads large blocks ahead of the hashing.
 *  After damage it goes on at the next place where a whole header stands. Does not interpret kinds. */
import { type FileHandle, open } from "node:fs/promises";
import type { Digest } from "../base/index.ts";
import type { FindingCode } from "./blob-store.ts";
import { isMissing } from "./files.ts";
import {
  checkEntry,
  type EntryHeader,
  findMagic,
  HEADER_BYTES,
  MAX_ENTRY_BYTES,
  readHeader,
} from "./pack-format.ts";
import type { BookPaths, PackName } from "./pack-names.ts";

export type PackStep =
  | {
      readonly type: "entry";
      readonly digest: Digest;
      readonly hex: string;
      readonly kind: string;
      /** A view into a block that is reused: valid until the next `more`. */
      readonly bytes: Uint8Array;
      readonly offset: number;
      readonly end: number;
      readonly payloadAt: number;
    }
  | {
      readonly type: "damage";
      readonly code: FindingCode;
      readonly message: string;
      readonly offset: number;
      readonly end: number;
      /** The digest in the header, where the header is whole. */
      readonly expected?: Digest;
      readonly actual?: Digest;
    };

/** Small enough that a block is still in the processor's cache when it is hashed. */
const BLOCK_BYTES = 2 * 1024 * 1024;
/** Room before a block for the beginning of an entry that the block completes. */
const HEADROOM = Math.ceil(MAX_ENTRY_BYTES / 4096) * 4096;

/** Two blocks, one being hashed while the other is read; shared by the packs of one scan. */
export class ScanBlocks {
  front = Buffer.alloc(0);
  back = Buffer.alloc(0);

  swap(): void {
    [this.front, this.back] = [this.back, this.front];
  }

  /** Small packs need small blocks only. */
  reserveBack(bytes: number): void {
    if (this.back.length < bytes) this.back = Buffer.allocUnsafeSlow(bytes);
  }
}

/** Opens a pack that its writer may seal, or gc remove, meanwhile; undefined if it is gone. */
export async function openPack(
  paths: BookPaths,
  pack: PackName,
  options: { from?: number; blocks: ScanBlocks },
): Promise<{ reader: PackReader; sealed: boolean } | undefined> {
  for (const sealed of pack.sealed ? [true] : [false, true]) {
    const path = sealed ? paths.sealedPack(pack.id) : paths.openPack(pack.id);
    try {
      return { reader: await PackReader.open(path, options), sealed };
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  return undefined;
}

export class PackReader {
  /** The length of the file when it was opened; what is appended later is not read. */
  readonly size: number;
  readonly #file: FileHandle;
  readonly #blocks: ScanBlocks;
  /** Bytes before each block; a pack of one block needs none. */
  readonly #headroom: number;
  /** Offset in the file of byte 0 of the front block. */
  #base: number;
  /** End of the valid bytes in the front block. */
  #filled: number;
  #position: number;
  /** Where the search for the next header goes on, while one is under way. */
  #searchFrom: number | undefined;
  #ahead: Promise<number>;

  private constructor(
    file: FileHandle,
    size: number,
    { from, blocks }: { from: number; blocks: ScanBlocks },
  ) {
    this.#file = file;
    this.size = size;
    this.#blocks = blocks;
    this.#position = from;
    this.#headroom = size - from > BLOCK_BYTES ? HEADROOM : 0;
    this.#base = from - this.#headroom;
    this.#filled = this.#headroom;
    this.#ahead = this.#readAhead(from);
  }

  static async open(path: string, options: { from?: number; blocks?: ScanBlocks } = {}): Promise<PackReader> {
    const file = await open(path, "r");
    const { size } = await file.stat();
    return new PackReader(file, size, {
      from: options.from ?? 0,
      blocks: options.blocks ?? new ScanBlocks(),
    });
  }

  /** The next step, "more" if the block is used up (then await `more`), or undefined at the end. */
  next(): PackStep | "more" | undefined {
    const offset = this.#position;
    if (offset >= this.size) return undefined;
    if (this.#searchFrom !== undefined) return this.#search();
    const left = this.size - offset;
    const available = this.#base + this.#filled - offset;
    if (left >= HEADER_BYTES && available < HEADER_BYTES) return "more";
    const at = offset - this.#base;
    const header = left < HEADER_BYTES ? undefined : readHeader(this.#blocks.front, { at, offset });
    if (header === undefined || header.layout.end > left) {
      this.#searchFrom = offset + 8;
      return this.#search();
    }
    if (header.layout.end > available) return "more";
    this.#position = offset + header.layout.end;
    return this.#entry(at, header);
  }

  /** Brings the next block in. Views of earlier steps are no longer valid. */
  async more(): Promise<void> {
    const read = await this.#ahead;
    const keepFrom = this.#searchFrom ?? this.#position;
    const carry = Math.max(0, this.#base + this.#filled - keepFrom);
    const { front, back } = this.#blocks;
    if (carry > 0) front.copy(back, this.#headroom - carry, this.#filled - carry, this.#filled);
    this.#blocks.swap();
    this.#base += this.#filled - this.#headroom;
    this.#filled = this.#headroom + read;
    this.#ahead = this.#readAhead(this.#base + this.#filled);
  }

  async close(): Promise<void> {
    await this.#ahead.catch(() => 0);
    await this.#file.close();
  }

  #entry(at: number, header: EntryHeader): PackStep {
    const block = this.#blocks.front;
    const offset = at + this.#base;
    const end = offset + header.layout.end;
    const { digest, hex, kind, fault } = checkEntry(block, at, header);
    if (fault !== undefined) return { type: "damage", offset, end, expected: digest, ...fault };
    const { payloadAt } = header.layout;
    const bytes = new Uint8Array(block.buffer, block.byteOffset + at + payloadAt, header.payloadBytes);
    return { type: "entry", digest, hex, kind, bytes, offset, end, payloadAt: offset + payloadAt };
  }

  /** Looks for the next whole header after damage at the current position. */
  #search(): PackStep | "more" {
    const block = this.#blocks.front.subarray(0, this.#filled);
    const limit = this.#filled - HEADER_BYTES + 1;
    let at = this.#searchFrom! - this.#base;
    while (at < limit) {
      at = findMagic(block, at, { to: limit, shift: this.#base });
      if (at < 0) break;
      const offset = at + this.#base;
      const header = readHeader(block, { at, offset });
      if (header !== undefined && offset + header.layout.end <= this.size) return this.#damageUpTo(offset);
      at += 8;
    }
    if (this.#base + this.#filled >= this.size) return this.#damageUpTo(this.size);
    // A magic may straddle the blocks: the last bytes are searched again with the next one.
    this.#searchFrom = Math.max(this.#searchFrom!, this.#base + limit);
    return "more";
  }

  #damageUpTo(end: number): PackStep {
    const offset = this.#position;
    this.#position = end;
    this.#searchFrom = undefined;
    const cut = end === this.size;
    return {
      type: "damage",
      code: cut ? "truncated" : "bad-header",
      message: cut ? "no whole entry from here to the end of the file" : "no whole entry begins here",
      offset,
      end,
    };
  }

  #readAhead(offset: number): Promise<number> {
    const reading = this.#fillBack(offset);
    // Its failure is thrown by the `more` that awaits it; until then it must not count as unhandled.
    reading.catch(() => undefined);
    return reading;
  }

  async #fillBack(offset: number): Promise<number> {
    const wanted = Math.min(BLOCK_BYTES, this.size - offset);
    if (wanted > 0) this.#blocks.reserveBack(this.#headroom + wanted);
    let read = 0;
    while (read < wanted) {
      const { bytesRead } = await this.#file.read(
        this.#blocks.back,
        this.#headroom + read,
        wanted - read,
        offset + read,
      );
      if (bytesRead === 0) break;
      read += bytesRead;
    }
    return read;
  }
}
