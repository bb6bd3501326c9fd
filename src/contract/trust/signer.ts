/** A private key that signs records and heads. The key itself leaves this module only for another thread of the process. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { type Digest, reasonOf } from "../../base/index.ts";
import { refuse, type Sealed, seal } from "../codec/index.ts";
import { Attestation, attestationMessage } from "./attestation.ts";
import { BookHead, headMessage, type UnsignedHead } from "./head.ts";
import { nameKey, type PublicKey } from "./keys.ts";

export interface Signer {
  readonly publicKey: PublicKey;
  attest(subjects: readonly Digest[]): Sealed<Attestation>;
  signHead(head: UnsignedHead): Sealed<BookHead>;
}

export function signerFromPem(pem: string): Signer {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch (cause) {
    throw refuse(
      "bad-signature",
      {},
      `not a readable private key: ${reasonOf(cause)}. Restore the file, or replace it with \`rollbook keys new --force\`.`,
      { cause },
    );
  }
  if (key.asymmetricKeyType !== "ed25519") {
    throw refuse(
      "bad-signature",
      { type: key.asymmetricKeyType },
      `the key is ${key.asymmetricKeyType}, not Ed25519. Restore the file, or replace it with \`rollbook keys new --force\`.`,
    );
  }
  return signerFromKey(key);
}

const keys = new WeakMap<Signer, KeyObject>();

/** For a thread of this process that is to sign in the same name; undefined for a signer that was not made here. */
export function keyOfSigner(signer: Signer): KeyObject | undefined {
  return keys.get(signer);
}

export function signerFromKey(key: KeyObject): Signer {
  const publicKey = nameKey(createPublicKey(key));
  const signed = (message: Buffer) => sign(null, message, key).toString("base64url");
  const signer: Signer = {
    publicKey,
    attest(subjects) {
      const sorted = [...new Set(subjects)].sort();
      const signature = signed(attestationMessage(publicKey, sorted));
      return seal(Attestation, { signer: publicKey, subjects: sorted, signature });
    },
    signHead(head) {
      const whole = { ...head, signer: publicKey };
      return seal(BookHead, { ...whole, signature: signed(headMessage(whole)) });
    },
  };
  keys.set(signer, key);
  return signer;
}

export function newKeyPem(): string {
  return generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }) as string;
}
