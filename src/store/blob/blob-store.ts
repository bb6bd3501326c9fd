/** Content-addressed storage of blobs, each with a kind.
 *  In: (kind, bytes). Out: digest = SHA-256(kind, 0x00, bytes), and the same bytes back, checked. Does not know what a
 *  kind means or which blob refers to which; the caller does. */
import { type Digest, RollbookError } from "../../base/index.ts";

export interface BlobStore {
  /** Stages a blob. `get` of this store sees it at once; a later resolved `flush` makes it durable. Put a referenced
   *  blob before the blob that refers to it: a crash keeps a prefix of the puts. */
  put(kind: string, bytes: Uint8Array): Digest;
  /** Resolves when everything put before the call survives a crash. Concurrent callers share one fsync. */
  flush(): Promise<void>;
  /** The blob, with length and digest checked; undefined if the store does not have it. */
  get(digest: Digest): Promise<Blob | undefined>;
  has(digest: Digest): Promise<boolean>;
  /** Every stored entry in storage order, checked; damage is an item, not an error. A blob that is stored twice comes
   *  twice. `bytes` may be a view into a reused block and is valid until the next step; copy it to keep it. */
  scan(): AsyncIterable<ScanItem>;
  /** As `scan`, in runs. The caller must consume a run before it asks for the next one; otherwise the store throws.
   *  Within a run nothing is awaited, because awaiting is the main cost of scanning many small blobs. */
  scanRuns(): AsyncIterable<Iterable<ScanItem>>;
  /** Makes everything durable and releases locks and files. */
  close(): Promise<void>;
}

export interface Blob {
  readonly kind: string;
  /** Starts 8-byte aligned in its ArrayBuffer, so a typed array can view it without a copy. */
  readonly bytes: Uint8Array;
}

/** Location of the bytes of a blob: a file, relative to the book, and the range of the payload in it. */
export interface Location {
  readonly file: string;
  readonly offset: number;
  readonly length: number;
}

export type ScanItem =
  | {
      readonly type: "blob";
      readonly digest: Digest;
      /** Hexadecimal digits of the digest, as hashing returned them. For callers that need no more: the joined
       *  `sha256:` text has a cost only when it is read. */
      readonly hex: string;
      readonly kind: string;
      readonly bytes: Uint8Array;
      readonly location: Location;
    }
  /** A blob in a separate file, checked in pieces; call `get` to read its bytes. */
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

/** A damaged range: the file, the bytes, and the fault. */
export interface Finding {
  readonly code: FindingCode;
  readonly file: string;
  readonly offset: number;
  readonly length: number;
  readonly message: string;
  readonly expected?: string;
  /** Kind of the expected blob, if the header of its entry is intact. */
  readonly kind?: string;
  readonly actual?: string;
}

export const MAX_KIND_BYTES = 128;
/** Prefix of kinds that the pack format itself uses; callers must not put them. */
const RESERVED_PREFIX = "rollbook.pack-";

const KIND = /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/;
/** Cache of valid kinds: there are few, and every blob repeats one. */
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

/** Refuses an invalid kind, because kinds become part of digests and file names. */
export function checkKind(kind: string): void {
  if (isKind(kind) && !kind.startsWith(RESERVED_PREFIX)) return;
  throw new RollbookError(
    "bad-kind",
    { kind },
    `${JSON.stringify(kind.slice(0, 80))} is not a kind. Use at most ${MAX_KIND_BYTES} of a-z 0-9 . _ -, not beginning with ${RESERVED_PREFIX}`,
  );
}

/** Converts a finding to an error, for reads that cannot continue. */
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
