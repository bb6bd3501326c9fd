/** Reusable memory for request bodies: fresh pages cost more than reading a file into them. In: a file. Out: its bytes,
 *  valid while `use` runs. A body may be overwritten while an answered request still sends it. The server refuses it
 *  then, because every body has a checksum in its headers. */
import { open } from "node:fs/promises";
import { RollbookError } from "../../base/index.ts";

/** Larger bodies are rare, and smaller ones cost little to allocate: both get separate memory. */
const SMALL_BYTES = 64 * 1024;
const KEPT_BYTES = 8 * 1024 * 1024;
const MOST_KEPT = 4;

export class BodyBuffers {
  readonly #free: Buffer[] = [];

  async withFile<T>(path: string, size: number, use: (bytes: Uint8Array) => Promise<T>): Promise<T> {
    const isKept = size > SMALL_BYTES && size <= KEPT_BYTES;
    const buffer =
      (isKept ? this.#free.pop() : undefined) ?? Buffer.allocUnsafeSlow(isKept ? KEPT_BYTES : size);
    try {
      await fill(buffer, path, size);
      return await use(buffer.subarray(0, size));
    } finally {
      if (isKept && this.#free.length < MOST_KEPT) this.#free.push(buffer);
    }
  }
}

async function fill(buffer: Buffer, path: string, size: number): Promise<void> {
  const file = await open(path, "r");
  try {
    for (let filled = 0; filled < size; ) {
      const { bytesRead } = await file.read(buffer, filled, size - filled, filled);
      if (bytesRead === 0)
        throw new RollbookError(
          "short-file",
          { path, size },
          `${path} is shorter than ${size} bytes, which it had. Check the disk, then run the command again.`,
        );
      filled += bytesRead;
    }
  } finally {
    await file.close();
  }
}
