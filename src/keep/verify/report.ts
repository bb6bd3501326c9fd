/** What `verify` found. Self-consistent is one thing, signed by a trusted key another: both are reported. */
import type { Digest } from "../../base/index.ts";
import type { PublicKey } from "../../contract/index.ts";

export interface Problem {
  code: string;
  /** What is broken, by the name people know it under, as far as it can be told. */
  record: string;
  kind?: string | undefined;
  digest?: Digest | undefined;
  /** File and offset, or the record that led here. */
  where: string;
  message: string;
}

export interface ErasedReport {
  /** Of a whole book all that its tombstones name; of one record those that it leads to. */
  rollouts: { rollout: string; content: Digest; tombstone: Digest }[];
  /** References that lead to something erased. */
  references: number;
  /** Batches that cannot be cut again, because rollouts of theirs were erased. */
  batches: { batch: Digest; erased: number; artifacts: number }[];
  tombstones: ErasedBy[];
}

/** Records of one kind: how many there are, how many are signed, how many of those by a trusted key. */
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
  /** Records and blobs that it names. */
  blobs: number;
  signed: boolean;
  trusted: boolean;
}

export interface VerifyReport {
  ok: boolean;
  problems: Problem[];
  /** Blobs by kind. */
  counts: Record<string, number>;
  blobs: number;
  bytes: number;
  /** What was erased on purpose: named by a tombstone, referred to, and not there. No problem in itself. */
  erased: ErasedReport;
  /** References that may live outside the book and do: named, not checked. */
  external: number;
  /** Each of them: the record that names it, in which field. */
  outside: { record: string; field: string; digest: Digest }[];
  /** Rollout ids under which the book holds several contents: two writers sealed one id, each its own. */
  sameId: { rollout: string; contents: Digest[] }[];
  /** Revisions that samples name without a record of theirs in the book. */
  unrecordedRevisions: string[];
  /** Signed heads of the book, and the one with the highest number. */
  heads: {
    count: number;
    latest?: { digest: Digest; sequence: number; atMs: number; signer: PublicKey };
  };
  /** Whether a trusted key says that gc folded this head: then it is not lost. */
  isFolded: (head: Digest) => boolean;
  /** `artifacts`, `signed` and `trusted` count rollouts; `roots` counts every kind of record that has to be signed. */
  trust: {
    artifacts: number;
    signed: number;
    trusted: number;
    roots: Record<string, KindTrust>;
    signers: { key: PublicKey; artifacts: number; roots: number; trusted: boolean }[];
  };
}
