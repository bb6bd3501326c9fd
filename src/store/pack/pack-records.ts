/** The three entries that describe a pack: header, footer, and stand-ins for large blobs.
 *  In: their fields. Out: canonical JSON bytes; parsing them back is strict. */
import { createHash, type Hash } from "node:crypto";
import {
  canonicalize,
  type Digest,
  decodeUtf8,
  digestJson,
  idFault,
  isDigest,
  isObject,
  isRollbookError,
  parseJson,
  writeHex,
} from "../../base/index.ts";
import type { PackState } from "../../contract/index.ts";
import { isKind } from "../blob/index.ts";

export interface PackHeader {
  readonly pack: string;
  readonly host: string;
  readonly pid: number;
  readonly startedAt: string;
}

interface PackFooter {
  /** Number of entries before the footer, including the pack header. */
  readonly entries: number;
  /** SHA-256("rollbook.pack-chain.v1", 0x00, digest, digest, …) over those entries in order. */
  readonly chain: Digest;
}

export interface LargeEntry {
  readonly digest: Digest;
  readonly kind: string;
  readonly bytes: number;
}

export function jsonBytes(value: object): Buffer {
  return Buffer.from(canonicalize(value));
}

export function parsePackHeader(bytes: Uint8Array): PackHeader | undefined {
  const value = parseObject(bytes);
  return value !== undefined && typeof value.pack === "string" ? (value as unknown as PackHeader) : undefined;
}

export function parseFooter(bytes: Uint8Array): PackFooter | undefined {
  const value = parseObject(bytes);
  if (value === undefined || !Number.isSafeInteger(value.entries) || !isDigest(value.chain)) return undefined;
  return { entries: value.entries as number, chain: value.chain };
}

export function parseLargeEntry(bytes: Uint8Array): LargeEntry | undefined {
  const value = parseObject(bytes);
  if (value === undefined || !Number.isSafeInteger(value.bytes) || !isDigest(value.digest)) return undefined;
  if (typeof value.kind !== "string" || !isKind(value.kind)) return undefined;
  return { digest: value.digest, kind: value.kind, bytes: value.bytes as number };
}

/** The running digest over the entries of a pack. Hashes in batches, because one update costs more than hashing 32
 *  bytes. */
export class PackChain {
  readonly #hash: Hash = createHash("sha256").update("rollbook.pack-chain.v1\0");
  readonly #batch = Buffer.allocUnsafe(32 * 64);
  #entries = 0;

  get entries(): number {
    return this.#entries;
  }

  add(digest: Digest): void {
    this.addHex(digest.slice(7));
  }

  /** As `add`, for the hexadecimal digits of a digest alone. */
  addHex(hex: string): void {
    const at = (this.#entries++ % 64) * 32;
    writeHex(hex, { from: 0, target: this.#batch, at });
    if (at === 63 * 32) this.#hash.update(this.#batch);
  }

  /** Current state of a pack, in the form that heads use. */
  state(pack: string): PackState {
    const { entries, chain } = this.footer();
    return { pack, entries, chain: chain.slice("sha256:".length) };
  }

  footer(): PackFooter {
    const rest = this.#batch.subarray(0, (this.#entries % 64) * 32);
    return {
      entries: this.#entries,
      chain: `sha256:${this.#hash.copy().update(rest).digest("hex")}` as Digest,
    };
  }
}

export function encodeBook({ createdAtMs, id }: { createdAtMs: number; id: string }): Buffer {
  const book = { schema: "rollbook.book.v1", createdAt: new Date(createdAtMs).toISOString(), id };
  return jsonBytes({ ...book, digest: digestJson("rollbook.book.v1", book) });
}

/** Identity of a book, from a valid book.json. A book made before ids existed gets an id derived from its digest: every
 *  process derives the same id, and nothing is written. */
export function bookIdOf(bytes: Uint8Array): string {
  const { id, digest } = parseObject(bytes) as { id?: string; digest: Digest };
  return id ?? `book-${digest.slice(7, 39)}`;
}

/** Digest in a valid book.json, as hex. */
export function bookDigestOf(bytes: Uint8Array): string {
  return (parseObject(bytes) as { digest: Digest }).digest.slice("sha256:".length);
}

/** Fault in the bytes of book.json, or undefined. */
export function bookFault(bytes: Uint8Array): string | undefined {
  const value = parseObject(bytes);
  if (value === undefined) return "it is not JSON";
  const { digest, ...book } = value;
  if (book.schema !== "rollbook.book.v1") return `its schema is ${JSON.stringify(book.schema)}`;
  if (book.id !== undefined && (typeof book.id !== "string" || idFault(book.id) !== undefined))
    return `its id is ${JSON.stringify(book.id)}`;
  if (digest !== digestJson("rollbook.book.v1", book)) return "its digest does not fit its content";
  return jsonBytes(value).equals(bytes) ? undefined : "it is not in canonical form";
}

function parseObject(bytes: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value = parseJson(decodeUtf8(bytes));
    return isObject(value) ? value : undefined;
  } catch (error) {
    if (isRollbookError(error)) return undefined;
    throw error;
  }
}
