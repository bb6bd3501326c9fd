/** What `verify` found. Self-consistent is one thing, signed by a trusted key another: both are reported. */
import type { Digest } from "../../base/digest.ts";
import type { PublicKey } from "../../contract/attestation.ts";

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

export interface VerifyReport {
  ok: boolean;
  problems: Problem[];
  /** Blobs by kind. */
  counts: Record<string, number>;
  blobs: number;
  bytes: number;
  /** References that may live outside the book and do: named, not checked. */
  external: number;
  /** Revisions that samples name without a record of theirs in the book. */
  unrecordedRevisions: string[];
  trust: {
    artifacts: number;
    signed: number;
    trusted: number;
    signers: { key: PublicKey; artifacts: number; trusted: boolean }[];
  };
}
