/** Collects the output of a program: keeps the first `limit` bytes, counts the rest, and calls `onFlood` on a flood.
 *  In: chunks. Out: kept bytes, truncation. Does not read streams. */
import { FLOOD_FACTOR } from "./sandbox.ts";

export class OutputBuffer {
  readonly #limit: number;
  readonly #onFlood: () => void;
  readonly #chunks: Uint8Array[] = [];
  #kept = 0;
  #seen = 0;

  constructor(limit: number, onFlood: () => void = () => {}) {
    this.#limit = limit;
    this.#onFlood = onFlood;
  }

  push(chunk: Uint8Array): void {
    this.#seen += chunk.byteLength;
    const room = this.#limit - this.#kept;
    if (room > 0) {
      // Copies, because a slice would keep the whole pooled chunk alive.
      const part = Uint8Array.prototype.slice.call(chunk, 0, Math.min(room, chunk.byteLength));
      this.#chunks.push(part);
      this.#kept += part.byteLength;
    }
    if (this.#seen > floodBytes(this.#limit)) this.#onFlood();
  }

  get truncated(): boolean {
    return this.#seen > this.#kept;
  }

  bytes(): Uint8Array {
    return new Uint8Array(Buffer.concat(this.#chunks));
  }
}

/** The minimum gives a verbose but finite program enough room even with a small limit. */
export function floodBytes(limit: number): number {
  return Math.max(limit * FLOOD_FACTOR, 1024 * 1024);
}
