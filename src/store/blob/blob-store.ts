/** Where bytes live: content-addressed blobs of a kind.
 *  In: (kind, bytes). Out: digest = SHA-256(kind, 0x00, bytes), and the same bytes back, checked.
 *  Knows no domain: what a kind means, and what refers to what, is the caller's business. */
import { type Digest, RollbookError } from "../../base/index.ts";

export interface BlobStore {
  /** Stages a blob: `get` of this store sees it at once, a later resolved `flush` makes it durable.
   *  Put what is referred to before what refers to it: a crash keeps a prefix of the puts. */
  put(kind: string, bytes: Uint8Array): Digest;
  /** Resolves when everything put before the call survives a crash. Concurrent callers share one fsync. */
  flush(): Promise<void>;
  /** The blob, its length and digest checked; undefined if the store has none. */
  get(digest: Digest): Promise<Blob | undefined>;
  has(digest: Digest): Promise<boolean>;
  /** Every stored entry in storage order, checked; damage is an item, not an error. A blob stored twice
   *  comes twice. `bytes` may be a view into a reused block: it holds until the next step, copy to keep. */
  scan(): AsyncIterable<ScanItem>;
  /** The same in runs, each to be gone through before the next is asked for, which is an error otherwise: within one
   *  nothing is waited for, which for many small blobs is most of what a scan costs. */
  scanRuns(): AsyncIterable<Iterable<ScanItem>>;
  /** Makes everything durable and releases what is held. */
  close(): Promise<void>;
}

export interface Blob {
  readonly kind: string;
  /** Begins 8-byte aligned in its ArrayBuffer, so a typed array can lie over it without a copy. */
  readonly bytes: Uint8Array;
}

/** Where the bytes of a blob stand: a file, relative to the book, and the range of the payload in it. */
export interface Location {
  readonly file: string;
  readonly offset: number;
  readonly length: number;
}

export type ScanItem =
  | {
      readonly type: "blob";
      readonly digest: Digest;
      /** The hexadecimals of the digest, as they came out of hashing: for those who go by them alone, because the
       *  joined text costs something only once it is read. */
      readonly hex: string;
      readonly kind: string;
      readonly bytes: Uint8Array;
      readonly location: Location;
    }
  /** A blob in a file of its own, checked in pieces; `get` it where its bytes are wanted. */
  | { readonly type: "large"; readonly digest: Digest; readonly kind: string; readonly location: Location }
  | { readonly type: "damage"; readonly finding: Finding };

export type FindingCode =
  | "bad-book"
  | "bad-header"
  | "bad-padding"
  | "bad-kind"
  | "digest-mismatch"
  | "truncated"
  | "bad-pack-header"
  | "bad-footer"
  | "missing-footer"
  | "bad-large-entry"
  | "missing-large"
  | "bad-record"
  | "head-mismatch"
  | "missing-pack"
  | "foreign-replacement"
  | "unexpected-file";

/** Damage, named: which bytes of which file, and what is wrong with them. */
export interface Finding {
  readonly code: FindingCode;
  readonly file: string;
  readonly offset: number;
  readonly length: number;
  readonly message: string;
  readonly expected?: string;
  readonly actual?: string;
}

export const MAX_KIND_BYTES = 128;
/** Kinds the pack format itself uses; no caller may put them. */
const RESERVED_PREFIX = "rollbook.pack-";

const KIND = /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/;
/** Texts that were kinds: there are few, and they come again with every blob. */
const knownKinds = new Set<string>();
const KNOWN_KINDS = 256;

export function isKind(kind: string): boolean {
  if (knownKinds.has(kind)) return true;
  if (kind.length > MAX_KIND_BYTES || !KIND.test(kind)) return false;
  if (knownKinds.size < KNOWN_KINDS) knownKinds.add(kind);
  return true;
}

/** The items of a scan, one by one. */
export async function* itemsOf(runs: AsyncIterable<Iterable<ScanItem>>): AsyncGenerator<ScanItem> {
  for await (const run of runs) for (const item of run) yield item;
}

/** Refuses what cannot be a kind: it ends up in digests and in file names. */
export function checkKind(kind: string): void {
  if (isKind(kind) && !kind.startsWith(RESERVED_PREFIX)) return;
  throw new RollbookError(
    "bad-kind",
    { kind },
    `${JSON.stringify(kind.slice(0, 80))} is not a kind. Use at most ${MAX_KIND_BYTES} of a-z 0-9 . _ -, not beginning with ${RESERVED_PREFIX}`,
  );
}

/** The error form of a finding, for reads that cannot go on. */
export function damageError(finding: Finding): RollbookError {
  return new RollbookError(
    finding.code,
    { ...finding },
    `${finding.file} at ${finding.offset}: ${finding.message}. Restore the file from a copy. \`rollbook verify\` lists all damage.`,
  );
}

export function closedError(): RollbookError {
  return new RollbookError("store-closed", {}, "this store is closed. Open it again to use it.");
}
