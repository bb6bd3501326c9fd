/** Blobs too large for a pack, each in a separate file: `large/<pack>.<hex>.<kind>`, the bare payload.
 *  In: bytes. Out: a file (temp, rename), durable once it is synced with its directory, and its check in pieces. */
import { createHash, type Hash } from "node:crypto";
import { closeSync, fsyncSync, openSync, renameSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, join } from "node:path";
import { type Digest, digestBytes } from "../../base/index.ts";
import type { Finding } from "../blob/index.ts";
import { isMissing, linkOrCopy, OWNER_ONLY, syncDirectory, writeFully } from "../disk/index.ts";
import { type BookPaths, largeFile } from "./pack-names.ts";
import type { LargeEntry } from "./pack-records.ts";
import { writeError } from "./pack-writer.ts";

const PIECE_BYTES = 8 * 1024 * 1024;
const SYNCED_AT_ONCE = 4;

/** Path relative to the book, as used in locations and findings. */
export function largePath(pack: string, { digest, kind }: { digest: Digest; kind: string }): string {
  return join("large", largeFile({ pack, digest, kind }));
}

/** Returns the path of the file, which is not durable yet. */
export function writeLarge(
  paths: BookPaths,
  pack: string,
  { entry, bytes }: { entry: LargeEntry; bytes: Uint8Array },
): string {
  const name = largeFile({ pack, digest: entry.digest, kind: entry.kind });
  const temp = join(paths.tmp, name);
  try {
    const fd = openSync(temp, "w", OWNER_ONLY);
    try {
      writeFully(fd, bytes, 0);
    } finally {
      closeSync(fd);
    }
    const path = join(paths.large, name);
    renameSync(temp, path);
    return path;
  } catch (cause) {
    throw writeError(temp, cause);
  }
}

/** Makes large files durable. Syncs several at a time, so that the file system commits their names together. */
export async function syncLarge(paths: BookPaths, files: readonly string[]): Promise<void> {
  const ahead = files.values();
  const sync = async () => {
    for (const path of ahead) {
      const file = await open(path, "r+");
      try {
        await file.sync();
      } catch (cause) {
        throw writeError(path, cause);
      } finally {
        await file.close();
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(SYNCED_AT_ONCE, files.length) }, sync));
  if (files.length > 0) syncDirectory(paths.large);
}

/** Makes large files durable, synchronously. */
export function syncLargeNow(paths: BookPaths, files: readonly string[]): void {
  for (const path of files) {
    const fd = openSync(path, "r+");
    try {
      fsyncSync(fd);
    } catch (cause) {
      throw writeError(path, cause);
    } finally {
      closeSync(fd);
    }
  }
  if (files.length > 0) syncDirectory(paths.large);
}

/** Gives a large file a second name, under another pack. The bytes are not copied if the file system has hard links. */
export function linkLarge(
  paths: BookPaths,
  pack: string,
  { entry, from }: { entry: LargeEntry; from: string },
): void {
  const to = join(paths.root, largePath(pack, entry));
  try {
    linkOrCopy(from, to, { temp: join(paths.tmp, basename(to)), flush: true });
    syncDirectory(paths.large);
  } catch (cause) {
    throw writeError(to, cause);
  }
}

/** Checks a large file against its stand-in, in pieces; undefined if it is intact. */
export async function largeFault(
  paths: BookPaths,
  pack: string,
  entry: LargeEntry,
): Promise<Finding | undefined> {
  const file = largePath(pack, entry);
  const at = { file, offset: 0, length: entry.bytes, expected: entry.digest, kind: entry.kind };
  const hash = createHash("sha256").update(`${entry.kind}\0`);
  let length: number;
  try {
    length = await hashFile(join(paths.root, file), hash);
  } catch (error) {
    if (!isMissing(error)) throw error;
    return { ...at, code: "missing-large", message: `the pack names ${entry.digest}, the file is missing` };
  }
  const actual = `sha256:${hash.digest("hex")}`;
  return actual === entry.digest ? undefined : mismatch({ ...at, length, actual });
}

/** Bytes of a large blob, checked, or its fault. */
export async function readLarge(
  paths: BookPaths,
  pack: string,
  entry: LargeEntry,
): Promise<Uint8Array | Finding> {
  const file = largePath(pack, entry);
  const handle = await open(join(paths.root, file), "r");
  try {
    const { size } = await handle.stat();
    const bytes = new Uint8Array(new ArrayBuffer(size));
    for (let read = 0; read < size; ) {
      const { bytesRead } = await handle.read(bytes, read, Math.min(size - read, 2 ** 30), read);
      if (bytesRead === 0) break;
      read += bytesRead;
    }
    const actual = digestBytes(entry.kind, bytes);
    if (actual === entry.digest) return bytes;
    return mismatch({ file, offset: 0, length: size, expected: entry.digest, kind: entry.kind, actual });
  } finally {
    await handle.close();
  }
}

function mismatch(at: Omit<Finding, "code" | "message">): Finding {
  return { ...at, code: "digest-mismatch", message: `content is ${at.actual}, its name says ${at.expected}` };
}

async function hashFile(path: string, hash: Hash): Promise<number> {
  const handle = await open(path, "r");
  try {
    const { size } = await handle.stat();
    const piece = Buffer.allocUnsafeSlow(Math.min(size + 1, PIECE_BYTES));
    for (let read = 0; ; ) {
      const { bytesRead } = await handle.read(piece, 0, piece.length, read);
      if (bytesRead === 0) return read;
      hash.update(piece.subarray(0, bytesRead));
      read += bytesRead;
    }
  } finally {
    await handle.close();
  }
}
