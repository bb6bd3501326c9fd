/** Ed25519 signatures over sealed records. One signature covers many subjects, because verifying one costs as
 *  much as hashing 200 KB: a group commit signs once. Further signers (validators) add attestations of their own. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import { z } from "zod";
import { canonicalize, type Digest, reasonOf } from "../../base/index.ts";
import { defineRecord, digest, type RecordOf, refuse, type Sealed, seal } from "../codec/index.ts";

/** `ed25519:` and the base64url of the 32 key bytes: short enough to be its own name. */
export type PublicKey = `ed25519:${string}`;

const KEY_PREFIX = "ed25519:";

/** The last character of base64url has spare bits, here zero: a second spelling of a key would be a second signer. */
export const publicKey = z
  .string()
  .regex(
    /^ed25519:[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/,
    "is not a public key of the form ed25519:<43 base64url characters>",
  ) as unknown as z.ZodType<PublicKey, string>;
const signature = z
  .string()
  .regex(/^[A-Za-z0-9_-]{85}[AQgw]$/, "is not a signature of 86 base64url characters");

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

/** A private key that can only sign; the key itself never leaves this closure. */
export interface Signer {
  readonly publicKey: PublicKey;
  attest(subjects: readonly Digest[]): Sealed<Attestation>;
}

export function signerFromPem(pem: string): Signer {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch (cause) {
    throw refuse(
      "bad-signature",
      {},
      `not a readable private key: ${reasonOf(cause)}. Make one with \`rollbook keys new\`.`,
      { cause },
    );
  }
  if (key.asymmetricKeyType !== "ed25519") {
    throw refuse(
      "bad-signature",
      { type: key.asymmetricKeyType },
      `the key is ${key.asymmetricKeyType}, not Ed25519. Make one with \`rollbook keys new\`.`,
    );
  }
  const name = nameKey(createPublicKey(key));
  return {
    publicKey: name,
    attest(subjects) {
      const sorted = [...new Set(subjects)].sort();
      const signed = sign(null, message(name, sorted), key).toString("base64url");
      return seal(Attestation, { signer: name, subjects: sorted, signature: signed });
    },
  };
}

export function newKeyPem(): string {
  return generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }) as string;
}

/** Throws a refusal unless the signature is good. Says nothing about trust in the signer. */
export function checkAttestation(attestation: Attestation): void {
  if (!verify(null, ...signedParts(attestation))) throw badSignature(attestation);
}

/** The same on another thread: for those who check one after the other while serving many. */
export function checkAttestationAside(attestation: Attestation): Promise<void> {
  return new Promise((done, failed) => {
    verify(null, ...signedParts(attestation), (error, good) => {
      if (error === null && good) done();
      else failed(error ?? badSignature(attestation));
    });
  });
}

function signedParts({ signer, subjects, signature: signed }: Attestation): [Buffer, KeyObject, Buffer] {
  return [message(signer, subjects), keyOf(signer), Buffer.from(signed, "base64url")];
}

function badSignature({ signer, subjects }: Attestation): Error {
  return refuse(
    "bad-signature",
    { signer },
    `the signature by ${signer} does not fit its ${subjects.length} subjects.`,
  );
}

/** Distinct keys per subject: ten signatures by one signer are one signer. */
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

function message(signer: PublicKey, subjects: readonly Digest[]): Buffer {
  return Buffer.from(`${Attestation.kind}\0${canonicalize({ signer, subjects })}`);
}

/** Making a key object costs a fifth of a verification, and a book has few signers. */
const keys = new Map<PublicKey, KeyObject>();
const KEPT_KEYS = 64;

function keyOf(signer: PublicKey): KeyObject {
  const known = keys.get(signer);
  if (known !== undefined) return known;
  const x = signer.slice(KEY_PREFIX.length);
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  if (keys.size >= KEPT_KEYS) keys.clear();
  keys.set(signer, key);
  return key;
}

function nameKey(key: KeyObject): PublicKey {
  return `ed25519:${key.export({ format: "jwk" }).x}` as PublicKey;
}
