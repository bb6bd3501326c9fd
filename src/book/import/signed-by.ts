/** Finds the records of a book that a key has signed.
 *  In: a key, the book. Out: a predicate on records. Does not check signatures: `verify` does. */
import type { Digest } from "../../base/index.ts";
import { Attestation, type PublicKey } from "../../contract/index.ts";
import { type BlobStore, readRecord } from "../../store/index.ts";
import type { BookIndex } from "../open/index.ts";

export function signedBy(
  key: PublicKey,
  { book, index }: { book: Pick<BlobStore, "get">; index: BookIndex },
): (record: Digest) => Promise<boolean> {
  // One attestation covers many records, so each attestation is read only once.
  const signers = new Map<Digest, PublicKey>();
  const signerOf = async (attestation: Digest): Promise<PublicKey> => {
    const signer = signers.get(attestation) ?? (await readRecord(book, Attestation, attestation)).signer;
    signers.set(attestation, signer);
    return signer;
  };
  return async (record) => {
    for (const attestation of index.attestationsOf(record))
      if ((await signerOf(attestation)) === key) return true;
    return false;
  };
}
