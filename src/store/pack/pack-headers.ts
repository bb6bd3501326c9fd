/** Walks the headers of a pack and skips the payloads, to build an index quickly.
 *  In: an open pack file and a start offset. Out: each entry's digest, kind and place. Checks headers, not payloads
 *  (every read does). Skips damage without a report (every scan reports it). */
import { readSync } from "node:fs";
import type { Digest } from "../../base/index.ts";
import { MAX_KIND_BYTES } from "../blob/index.ts";
import { findMagic, HEADER_BYTES, headerDigest, headerKind, readHeader } from "./pack-format.ts";

export interface HeaderVisit {
  readonly digest: Digest;
  readonly kind: string;
  readonly offset: number;
  /** Length of the entry with header and padding. */
  readonly bytes: number;
  readonly payloadAt: number;
  readonly payloadBytes: number;
}

const WINDOW_BYTES = 16 * 1024;
const HEAD_BYTES = HEADER_BYTES + 8 + MAX_KIND_BYTES;

/** Calls `visit` for every entry with a valid header in [from, size); returns the end of the last one. */
export function walkHeaders(
  fd: number,
  { from, size }: { from: number; size: number },
  visit: (entry: HeaderVisit) => void,
): number {
  const window = new HeaderWindow(fd, size);
  let offset = from;
  let end = from;
  while (size - offset >= HEADER_BYTES) {
    const at = window.show(offset, Math.min(HEAD_BYTES, size - offset));
    const header = readHeader(window.bytes, { at, offset });
    if (header === undefined || offset + header.layout.end > size) {
      offset = nextHeader(window, offset + 8, size);
      continue;
    }
    const { payloadAt, end: bytes } = header.layout;
    visit({
      digest: headerDigest(window.bytes, at),
      kind: headerKind(window.bytes, at, header),
      offset,
      bytes,
      payloadAt: offset + payloadAt,
      payloadBytes: header.payloadBytes,
    });
    offset += bytes;
    end = offset;
  }
  return end;
}

/** End of the first entry of a pack, which is its header; 0 if the pack does not begin with one. */
export function firstEntryEnd(fd: number, size: number): number {
  let end = 0;
  walkHeaders(fd, { from: 0, size: Math.min(size, WINDOW_BYTES) }, ({ offset, bytes }) => {
    if (offset === 0) end = bytes;
  });
  return end;
}

/** First offset from `from` on with a magic, or `size`. */
function nextHeader(window: HeaderWindow, from: number, size: number): number {
  for (let offset = from; size - offset >= HEADER_BYTES; ) {
    const length = Math.min(WINDOW_BYTES, size - offset);
    const at = window.show(offset, length);
    const found = findMagic(window.bytes, at, { to: at + length - 3, shift: offset - at });
    if (found >= 0) return offset + found - at;
    offset += length < WINDOW_BYTES ? length : length - 8;
  }
  return size;
}

/** A moving window over the file. */
class HeaderWindow {
  readonly bytes = Buffer.allocUnsafeSlow(WINDOW_BYTES);
  readonly #fd: number;
  readonly #size: number;
  #from = 0;
  #filled = 0;

  constructor(fd: number, size: number) {
    this.#fd = fd;
    this.#size = size;
  }

  /** Index of `offset` in `bytes`, with at least `length` bytes after it. */
  show(offset: number, length: number): number {
    const at = offset - this.#from;
    if (at >= 0 && at + length <= this.#filled) return at;
    this.#from = offset;
    this.#filled = 0;
    const wanted = Math.min(WINDOW_BYTES, this.#size - offset);
    while (this.#filled < wanted) {
      const read = readSync(this.#fd, this.bytes, this.#filled, wanted - this.#filled, offset + this.#filled);
      if (read === 0) this.bytes.fill(0, this.#filled, wanted);
      this.#filled = read === 0 ? wanted : this.#filled + read;
    }
    return 0;
  }
}
