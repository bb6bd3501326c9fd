/** The report of `verify`. Self-consistency and signatures of trusted keys are different properties: both are
 *  reported. */
import type { Digest } from "../../base/index.ts";
import type { PublicKey } from "../../contract/index.ts";

export interface Problem {
  code: string;
  /** The broken record, by the name that people know, if it can be determined. */
  record: string;
  kind?: string | undefined;
  digest?: Digest | undefined;
  /** Damaged file, relative to the book; set only if its bytes are at fault. */
  file?: string | undefined;
  /** File and offset, or the record that led here. */
  where: string;
  message: string;
}

export interface ErasedReport {
  /** For a whole book: all rollouts that its tombstones name; for one record: those that it leads to. */
  rollouts: { rollout: string; content: Digest; tombstone: Digest }[];
  /** References that lead to something erased. */
  references: number;
  /** Batches that cannot be assembled again, because some of their rollouts were erased. */
  batches: { batch: Digest; erased: number; artifacts: number }[];
  tombstones: ErasedBy[];
}

/** Records of one kind: their number, the number signed, and the number signed by a trusted key. */
export interface KindTrust {
  count: number;
  signed: number;
  trusted: number;
}

interface ErasedBy {
  digest: Digest;
  reason: string;
  by: string;
  atMs: number;
  /** Number of records and blobs that the tombstone names. */
  blobs: number;
  signed: boolean;
  trusted: boolean;
}

export interface VerifyReport {
  ok: boolean;
  problems: Problem[];
  /** Number of blobs by kind. */
  counts: Record<string, number>;
  blobs: number;
  bytes: number;
  /** Deliberate erasures: named by a tombstone, referenced, and missing. Not a problem in itself. */
  erased: ErasedReport;
  /** References that may lead outside the book and do: named, not checked. */
  external: number;
  /** Each external reference: the record that names it with its kind, the field, and the thing in words. */
  outside: { record: string; kind: string; field: string; digest: Digest; what: string }[];
  /** Rollout ids with several contents in the book: two writers each sealed the same id. */
  sameId: { rollout: string; contents: Digest[] }[];
  /** Revisions that samples name and that have no record in the book. */
  unrecordedRevisions: string[];
  /** Signed heads of the book, and the head with the highest number. */
  heads: {
    count: number;
    latest?: { digest: Digest; sequence: number; atMs: number; signer: PublicKey };
  };
  /** True if a trusted key signed that gc folded this head: then the head is not lost. */
  isFolded: (head: Digest) => boolean;
  /** `artifacts`, `signed` and `trusted` count rollouts; `roots` counts every kind of record that must be signed. */
  trust: {
    artifacts: number;
    signed: number;
    trusted: number;
    roots: Record<string, KindTrust>;
    signers: { key: PublicKey; artifacts: number; roots: number; trusted: boolean }[];
  };
}
