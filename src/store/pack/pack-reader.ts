/** Reads a pack from end to end and checks every byte, at the speed of hashing.
 *  In: a pack file. Out: entries and damage, in file order. Reads block by block and yields to the event loop between
 *  blocks. After damage it continues at the next intact header. Does not interpret kinds. */
import { readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { setImmediate as turn } from "node:timers/promises";
import type { Digest } from "../../base/index.ts";
import type { FindingCode } from "../blob/index.ts";
import { isMissing } from "../disk/index.ts";
import { checkEntry, type EntryHeader, findMagic, HEADER_BYTES, readHeader } from "./pack-format.ts";
import type { BookPaths, PackName } from "./pack-names.ts";

export interface EntryStep {
  readonly type: "entry";
  readonly digest: Digest;
  readonly hex: string;
  readonly kind: string;
  /** View into a reused block: valid until the next `more`. */
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly end: number;
  readonly payloadAt: number;
}

export interface DamageStep {
  readonly type: "damage";
  readonly code: FindingCode;
  readonly message: string;
  readonly offset: number;
  readonly end: number;
  /** Digest and kind in the header, if the header is intact. */
  readonly expected?: Digest;
  readonly kind?: string;
  readonly actual?: Digest;
}

type PackStep = EntryStep | DamageStep;

/** Small enough that a block is still in the processor's cache when it is hashed, and that the system's read-ahead has
 *  the next block ready. Reading on another thread would cost more than the copy. */
export const BLOCK_BYTES = 512 * 1024;
/** Blocks that are read before yielding to the event loop: a few milliseconds of verification. */
const BLOCKS_PER_TURN = 4;

/** Buffer for a block; shared by the packs of one scan. */
export class ScanBlock {
  bytes = Buffer.alloc(0);

  /** Moves the bytes of [from, to) to the start, with room for `bytes` in total. */
  keep(from: number, to: number, bytes: number): void {
    if (this.bytes.length >= bytes) this.bytes.copyWithin(0, from, to);
    else {
      const wider = Buffer.allocUnsafeSlow(bytes);
      this.bytes.copy(wider, 0, from, to);
      this.bytes = wider;
    }
  }
}

/** Opens a pack that its writer may seal, or gc remove, meanwhile; undefined if it is missing. */
export async function openPack(
  paths: BookPaths,
  pack: PackName,
  options: { from?: number; block: ScanBlock },
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
  /** Length of the file when it was opened; later appends are not read. */
  readonly size: number;
  readonly #file: FileHandle;
  readonly #block: ScanBlock;
  /** Offset in the file of byte 0 of the block; a multiple of 8. */
  #base: number;
  /** End of the valid bytes in the block. */
  #filled = 0;
  #position: number;
  #blocks = 0;
  /** Bytes after the position that the next step needs. */
  #needed = HEADER_BYTES;
  /** Offset where a search for the next header continues, while a search is in progress. */
  #searchFrom: number | undefined;

  private constructor(file: FileHandle, size: number, { from, block }: { from: number; block: ScanBlock }) {
    this.#file = file;
    this.size = size;
    this.#block = block;
    this.#position = from;
    this.#base = from;
  }

  static async open(path: string, options: { from?: number; block?: ScanBlock } = {}): Promise<PackReader> {
    const file = await open(path, "r");
    const { size } = await file.stat();
    return new PackReader(file, size, {
      from: options.from ?? 0,
      block: options.block ?? new ScanBlock(),
    });
  }

  /** Returns the next step; "more" if the block is used up (then await `more`); undefined at the end. */
  next(): PackStep | "more" | undefined {
    const offset = this.#position;
    if (offset >= this.size) return undefined;
    if (this.#searchFrom !== undefined) return this.#search();
    const left = this.size - offset;
    const available = this.#base + this.#filled - offset;
    this.#needed = HEADER_BYTES;
    if (left >= HEADER_BYTES && available < HEADER_BYTES) return "more";
    const at = offset - this.#base;
    const header = left < HEADER_BYTES ? undefined : readHeader(this.#block.bytes, { at, offset });
    if (header === undefined || header.layout.end > left) {
      this.#searchFrom = offset + 8;
      return this.#search();
    }
    this.#needed = header.layout.end;
    if (header.layout.end > available) return "more";
    this.#position = offset + header.layout.end;
    return this.#entry(at, header);
  }

  /** Reads the next block. Views of earlier steps are no longer valid. */
  async more(): Promise<void> {
    if (this.#blocks++ % BLOCKS_PER_TURN === 0) await turn();
    const readFrom = this.#base + this.#filled;
    const keepFrom = Math.min(readFrom, Math.floor((this.#searchFrom ?? this.#position) / 8) * 8);
    const kept = readFrom - keepFrom;
    const wanted = Math.min(Math.max(BLOCK_BYTES, this.#needed - kept), this.size - readFrom);
    this.#block.keep(this.#filled - kept, this.#filled, kept + wanted);
    this.#base = keepFrom;
    this.#filled = kept + wanted;
    this.#fill(kept);
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  #entry(at: number, header: EntryHeader): PackStep {
    const block = this.#block.bytes;
    const offset = at + this.#base;
    const end = offset + header.layout.end;
    const { digest, hex, kind, fault } = checkEntry(block, at, header);
    if (fault !== undefined) return { type: "damage", offset, end, expected: digest, kind, ...fault };
    const { payloadAt } = header.layout;
    const bytes = new Uint8Array(block.buffer, block.byteOffset + at + payloadAt, header.payloadBytes);
    return { type: "entry", digest, hex, kind, bytes, offset, end, payloadAt: offset + payloadAt };
  }

  /** Searches the next intact header after damage at the current position. */
  #search(): PackStep | "more" {
    const block = this.#block.bytes.subarray(0, this.#filled);
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
    // A magic may straddle two blocks, so the last bytes are searched again with the next block.
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

  /** Reads the bytes of the block from `at` on. If the file was truncated meanwhile, the rest is zeros, which are no
   *  entry. */
  #fill(at: number): void {
    const { bytes } = this.#block;
    while (at < this.#filled) {
      const read = readSync(this.#file.fd, bytes, at, this.#filled - at, this.#base + at);
      if (read === 0) bytes.fill(0, at, this.#filled);
      at = read === 0 ? this.#filled : at + read;
    }
  }
}
