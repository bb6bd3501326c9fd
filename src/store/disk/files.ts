/** Durable file operations: a change is durable once its bytes and its directory entry are on disk. */
import {
  closeSync,
  copyFileSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";

/** Mode of files with recorded data. */
export const OWNER_ONLY = 0o600;

/** Makes renames, creations and removals in a directory durable. */
export function syncDirectory(path: string): void {
  // Windows cannot open directories, and its renames are durable by themselves.
  if (process.platform === "win32") return;
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Writes all of `bytes`, because a single write may be partial. */
export function writeFully(fd: number, bytes: Uint8Array, position: number): void {
  let written = 0;
  while (written < bytes.length)
    written += writeSync(fd, bytes, written, bytes.length - written, position + written);
}

/** Replaces `path` atomically: temp, fsync, rename, fsync of the directory. */
export function writeAtomically(path: string, bytes: Uint8Array, temp: string, mode?: number): void {
  const fd = openSync(temp, "w", mode);
  try {
    writeFileSync(fd, bytes);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(temp, path);
  syncDirectory(dirname(path));
}

/** Error codes of a file system without hard links, with too many links for this file, or of a link across file
 *  systems. */
const NO_LINK = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV", "EACCES"]);

/** Gives a file a second name. If linking fails, copies the file by way of `temp`. With `flush` the bytes of a copy are
 *  durable. */
export function linkOrCopy(
  from: string,
  to: string,
  { temp, flush }: { readonly temp: string; readonly flush: boolean },
): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (!NO_LINK.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
    copyFileSync(from, temp);
    const fd = openSync(temp, "r+");
    try {
      if (flush) fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temp, to);
  }
}

export function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === "ENOENT";
}
