/** Writes a file that appears complete or not at all and never replaces another: temporary name, fsync, link, fsync of
 *  the folder. In: a path and a function that fills the file. Out: its size in bytes. */
import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { RollbookError } from "../base/index.ts";
import { syncDirectory, unlinkIfThere, writeFully } from "../store/index.ts";

const BUFFER_BYTES = 1 << 20;

/** An open file. Appends through a buffer, or writes at any position. */
export class NewFile {
  readonly #fd: number;
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #flushed = 0;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** Holds `bytes` until they are written, so the caller must not change them. */
  append(bytes: Uint8Array): void {
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.length;
    if (this.#pendingBytes >= BUFFER_BYTES) this.flush();
  }

  writeAt(bytes: Uint8Array, position: number): void {
    writeFully(this.#fd, bytes, position);
  }

  flush(): void {
    if (this.#pendingBytes === 0) return;
    writeFully(this.#fd, Buffer.concat(this.#pending), this.#flushed);
    this.#flushed += this.#pendingBytes;
    this.#pending = [];
    this.#pendingBytes = 0;
  }
}

export async function writeNewFile(
  path: string,
  fill: (file: NewFile) => Promise<void> | void,
): Promise<void> {
  requireFree(path);
  const folder = dirname(path);
  if (!existsSync(folder))
    throw new RollbookError(
      "no-file",
      { path: folder },
      `the folder ${folder} does not exist. Create it, or name another file.`,
    );
  const { temporary, fd } = openTemporary(path);
  try {
    try {
      const file = new NewFile(fd);
      await fill(file);
      file.flush();
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    publish(temporary, path);
  } finally {
    unlinkIfThere(temporary);
  }
  syncDirectory(folder);
}

/** Opens a new name beside the file. A killed process may have left its temporary file, and in a container the next
 *  process has the same process id. */
function openTemporary(path: string): { temporary: string; fd: number } {
  for (let attempt = 0; ; attempt++) {
    const temporary = `${path}.${process.pid}-${attempt}.partial`;
    try {
      return { temporary, fd: openSync(temporary, "wx") };
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause;
    }
  }
}

export function requireFree(path: string): void {
  if (existsSync(path))
    throw new RollbookError("exists", { path }, `${path} already exists. Name another file.`);
}

/** A link fails if the name exists. A rename does not. */
function publish(temporary: string, path: string): void {
  try {
    linkSync(temporary, path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "EEXIST")
      throw new RollbookError("exists", { path }, `${path} already exists. Name another file.`, { cause });
    // For file systems without hard links.
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "ENOSYS") throw cause;
    requireFree(path);
    renameSync(temporary, path);
  }
}
