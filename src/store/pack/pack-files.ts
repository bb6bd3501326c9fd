/** Reads single entries from the packs of a book.
 *  In: a pack id and a place. Out: the entry, with header, length and digest checked. Keeps few files open; follows a
 *  pack through its rename from `.open` to `.pack`. */
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import type { Digest } from "../../base/index.ts";
import { type Blob, damageError, type Finding } from "../blob/index.ts";
import { isMissing } from "../disk/index.ts";
import { checkEntry, HEADER_BYTES, readHeader } from "./pack-format.ts";
import { type HeaderVisit, walkHeaders } from "./pack-headers.ts";
import type { BookPaths } from "./pack-names.ts";

/** Place of an entry, with header and padding. */
export interface PackPlace {
  readonly pack: string;
  readonly offset: number;
  readonly bytes: number;
}

const MAX_OPEN = 64;

export class PackFiles {
  readonly #paths: BookPaths;
  /** Open descriptors, least recently opened first. */
  readonly #open = new Map<string, number>();

  constructor(paths: BookPaths) {
    this.#paths = paths;
  }

  /** Entry at a place; if `digest` is given, it must match. Undefined if the pack is missing; throws on damage. */
  read(
    pack: string,
    { offset, bytes }: { offset: number; bytes: number },
    digest?: Digest,
  ): Blob | undefined {
    const fd = this.#descriptor(pack);
    if (fd === undefined) return undefined;
    const entry = Buffer.allocUnsafe(bytes);
    let filled = 0;
    while (filled < bytes) {
      const read = readSync(fd, entry, filled, bytes - filled, offset + filled);
      if (read === 0) break;
      filled += read;
    }
    return checkedBlob(entry.subarray(0, filled), { file: () => this.#fileName(pack), offset, digest });
  }

  /** Visits the headers from `from` on. Returns the end of the last intact entry; undefined if the pack is missing. */
  walk(pack: string, from: number, visit: (entry: HeaderVisit) => void): number | undefined {
    const fd = this.#descriptor(pack);
    if (fd === undefined) return undefined;
    const { size } = fstatSync(fd);
    return size > from ? walkHeaders(fd, { from, size }, visit) : from;
  }

  /** False once gc has removed the pack, even while its file is open here. */
  isThere(pack: string): boolean {
    const fd = this.#descriptor(pack);
    return fd !== undefined && fstatSync(fd).nlink > 0;
  }

  forget(pack: string): void {
    const fd = this.#open.get(pack);
    if (fd === undefined) return;
    this.#open.delete(pack);
    closeSync(fd);
  }

  close(): void {
    for (const pack of [...this.#open.keys()]) this.forget(pack);
  }

  #fileName(pack: string): string {
    return `packs/${pack}.${existsSync(this.#paths.openPack(pack)) ? "open" : "pack"}`;
  }

  #descriptor(pack: string): number | undefined {
    const held = this.#open.get(pack);
    if (held !== undefined) return held;
    // The pack may be renamed between two attempts: try sealed, open, and sealed again.
    const fd =
      openIfThere(this.#paths.sealedPack(pack)) ??
      openIfThere(this.#paths.openPack(pack)) ??
      openIfThere(this.#paths.sealedPack(pack));
    if (fd === undefined) return undefined;
    if (this.#open.size >= MAX_OPEN) this.forget(this.#open.keys().next().value!);
    this.#open.set(pack, fd);
    return fd;
  }
}

interface WantedBlob {
  readonly file: () => string;
  readonly offset: number;
  readonly digest: Digest | undefined;
}

function checkedBlob(entry: Buffer, { file, offset, digest }: WantedBlob): Blob {
  const fail = (finding: Pick<Finding, "code" | "message" | "kind" | "actual">): never => {
    const expected = digest === undefined ? {} : { expected: digest };
    throw damageError({ file: file(), offset, length: entry.length, ...expected, ...finding });
  };
  const header = entry.length < HEADER_BYTES ? undefined : readHeader(entry, { at: 0, offset });
  if (header === undefined || header.layout.end > entry.length)
    return fail({ code: "bad-header", message: "the entry that stood here is damaged" });
  const { digest: actual, kind, fault } = checkEntry(entry, 0, header);
  if (fault !== undefined) return fail({ kind, ...fault });
  if (digest !== undefined && actual !== digest)
    return fail({ code: "digest-mismatch", message: `content is ${actual}, wanted was ${digest}`, actual });
  const start = entry.byteOffset + header.layout.payloadAt;
  return { kind, bytes: new Uint8Array(entry.buffer, start, header.payloadBytes) };
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
