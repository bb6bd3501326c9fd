/** Appends entries to one open pack and seals it.
 *  In: entries. Out: `packs/<id>.open`, and `<id>.pack` once sealed. Writes are in order and synchronous (page cache
 *  speed), so a crash leaves a prefix; only the fsync is asynchronous. Does not decide when to sync. */
import { closeSync, fdatasync, fsyncSync, openSync, renameSync, unlinkSync } from "node:fs";
import { promisify } from "node:util";
import { type Digest, RollbookError, reasonOf } from "../../base/index.ts";
import type { PackState } from "../../contract/index.ts";
import { OWNER_ONLY, syncDirectory, writeFully } from "../disk/index.ts";
import {
  encodeEntry,
  entryLayout,
  PACK_FOOTER_KIND,
  PACK_HEADER_KIND,
  type PackEntry,
  writeEntry,
} from "./pack-format.ts";
import type { BookPaths } from "./pack-names.ts";
import { jsonBytes, PackChain, type PackHeader } from "./pack-records.ts";

const STAGING_BYTES = 1024 * 1024;
const syncData = promisify(fdatasync);

interface Appended {
  readonly digest: Digest;
  /** Absent if the entry was already known and nothing was written. */
  readonly place?: { readonly offset: number; readonly bytes: number };
}

export class PackWriter {
  readonly id: string;
  readonly #paths: BookPaths;
  readonly #fd: number;
  readonly #beforeWrite: () => void;
  readonly #staging = Buffer.allocUnsafeSlow(STAGING_BYTES);
  readonly #chain = new PackChain();
  #staged = 0;
  #written = 0;
  #syncs = 0;
  #ended = false;

  /** `beforeWrite` runs before staged entries are passed to the operating system: it must make durable what they
   *  name. */
  constructor(paths: BookPaths, header: PackHeader, beforeWrite: () => void = () => {}) {
    this.id = header.pack;
    this.#beforeWrite = beforeWrite;
    this.#paths = paths;
    this.#fd = openSync(paths.openPack(this.id), "wx", OWNER_ONLY);
    this.append({ kind: PACK_HEADER_KIND, payload: jsonBytes(header) });
    this.drain();
    syncDirectory(paths.packs);
  }

  /** Length of the pack, including staged entries. */
  get size(): number {
    return this.#written + this.#staged;
  }

  /** Number of entries except the pack header. */
  get blobs(): number {
    return this.#chain.entries - 1;
  }

  /** State of the entries so far, including staged entries. */
  get state(): PackState {
    return this.#chain.state(this.id);
  }

  /** Appends an entry unless `isKnown` is true for its digest. */
  append(entry: PackEntry, isKnown?: (digest: Digest) => boolean): Appended {
    const bytes = entryLayout(entry.kind.length, entry.payload.length).end;
    if (this.#staged + bytes > STAGING_BYTES) this.drain();
    const offset = this.size;
    const fits = bytes <= STAGING_BYTES;
    const own = fits ? undefined : encodeEntry(entry, offset);
    const digest = own?.digest ?? writeEntry(this.#staging, entry, { at: this.#staged, offset });
    if (isKnown?.(digest) === true) return { digest };
    if (own === undefined) this.#staged += bytes;
    else this.#write(own.bytes);
    this.#chain.add(digest);
    return { digest, place: { offset, bytes } };
  }

  /** Passes staged bytes to the operating system: from then on they survive a crash of the process, but not of the
   *  machine. */
  drain(): void {
    if (this.#staged === 0) return;
    this.#beforeWrite();
    this.#write(this.#staging.subarray(0, this.#staged));
    this.#staged = 0;
  }

  /** Resolves when everything drained before is on disk. */
  async sync(): Promise<void> {
    this.#syncs++;
    try {
      await syncData(this.#fd);
    } catch (cause) {
      throw writeError(this.#paths.openPack(this.id), cause);
    } finally {
      this.#syncs--;
      if (this.#ended && this.#syncs === 0) closeSync(this.#fd);
    }
  }

  /** Footer, fsync, rename, fsync of the directory; a pack without blobs is removed instead. */
  seal(): void {
    const open = this.#paths.openPack(this.id);
    try {
      if (this.blobs === 0) unlinkSync(open);
      else {
        const payload = jsonBytes(this.#chain.footer());
        this.append({ kind: PACK_FOOTER_KIND, payload });
        this.drain();
        fsyncSync(this.#fd);
        renameSync(open, this.#paths.sealedPack(this.id));
      }
      syncDirectory(this.#paths.packs);
    } catch (cause) {
      throw writeError(open, cause);
    }
    this.abandon();
  }

  /** Closes the file unsealed; the next writer recovers it. */
  abandon(): void {
    this.#ended = true;
    // A sync in flight still uses the descriptor and closes it when it ends.
    if (this.#syncs === 0) closeSync(this.#fd);
  }

  #write(bytes: Uint8Array): void {
    try {
      writeFully(this.#fd, bytes, this.#written);
    } catch (cause) {
      throw writeError(this.#paths.openPack(this.id), cause);
    }
    this.#written += bytes.length;
  }
}

export function writeError(path: string, cause: unknown): RollbookError {
  return new RollbookError(
    "write-failed",
    { path },
    `${path}: ${reasonOf(cause)}. Flushed records are safe; free space or repair the disk, then open the book again.`,
    { cause },
  );
}
