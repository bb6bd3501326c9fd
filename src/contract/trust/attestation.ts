/** Ed25519 signatures over sealed records. Verifying a signature costs as much as hashing 200 KB, so one signature
 *  covers many subjects: a group commit signs once. Further signers (validators) add their own attestations. */
import { type KeyObject, verify } from "node:crypto";
import * as z from "zod";
import { canonicalize, type Digest } from "../../base/index.ts";
import { defineRecord, digest, type RecordOf, refuse } from "../codec/index.ts";
import { keyOf, type PublicKey, publicKey, signature } from "./keys.ts";

export const Attestation = defineRecord({
  kind: "rollbook.attestation.v1",
  summary: "A signature by one key over a list of record digests.",
  shape: {
    signer: publicKey,
    subjects: z.array(digest).min(1).max(4096),
    signature,
  },
  references: (attestation) =>
    attestation.subjects.map((subject, i) => ({ digest: subject, kind: "", field: `subjects[${i}]` })),
  check(attestation) {
    for (let i = 1; i < attestation.subjects.length; i++) {
      if (attestation.subjects[i - 1]! >= attestation.subjects[i]!) {
        throw refuse("bad-record", { field: "subjects" }, "subjects are not sorted and unique.");
      }
    }
  },
});
export type Attestation = RecordOf<typeof Attestation>;

/** Throws a refusal unless the signature is valid. Does not check trust in the signer. */
export function checkAttestation(attestation: Attestation): void {
  if (!verify(null, ...signedParts(attestation))) throw badSignature(attestation);
}

/** As checkAttestation, on another thread: for servers that check attestations between requests. */
export function checkAttestationAside(attestation: Attestation): Promise<void> {
  return new Promise((done, failed) => {
    verify(null, ...signedParts(attestation), (error, good) => {
      if (error === null && good) done();
      else failed(error ?? badSignature(attestation));
    });
  });
}

function signedParts({ signer, subjects, signature: signed }: Attestation): [Buffer, KeyObject, Buffer] {
  const message = attestationMessage(attestationText(signer, subjects));
  return [message, keyOf(signer), Buffer.from(signed, "base64url")];
}

function badSignature({ signer, subjects }: Attestation): Error {
  return refuse(
    "bad-signature",
    { signer },
    `the signature by ${signer} does not fit its ${subjects.length} subjects.`,
  );
}

/** Distinct keys per subject: ten signatures by one key count as one signer. */
export function signersOf(attestations: Iterable<Attestation>): Map<Digest, Set<PublicKey>> {
  const signers = new Map<Digest, Set<PublicKey>>();
  for (const { signer, subjects } of attestations) {
    for (const subject of subjects) {
      const known = signers.get(subject);
      if (known) known.add(signer);
      else signers.set(subject, new Set([signer]));
    }
  }
  return signers;
}

/** Text of an attestation. The subjects are sorted and unique. */
export function attestationText(signer: PublicKey, subjects: readonly Digest[]): string {
  return canonicalize({ signer, subjects });
}

/** Signed message of an attestation. The kind comes first, so that the signature fits no record of another kind. */
export function attestationMessage(text: string): Buffer {
  return Buffer.from(`${Attestation.kind}\0${text}`);
}
