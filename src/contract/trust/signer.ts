/** A private key that signs records and heads. The key itself never leaves its closure. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { type Digest, reasonOf } from "../../base/index.ts";
import { refuse, type Sealed, seal } from "../codec/index.ts";
import { Attestation, attestationMessage, attestationText } from "./attestation.ts";
import { BookHead, headMessage, type UnsignedHead } from "./head.ts";
import { nameKey, type PublicKey } from "./keys.ts";

export interface Signer {
  readonly publicKey: PublicKey;
  attest(subjects: readonly Digest[]): Sealed<Attestation>;
  /** Signs an attestation on another thread; the caller seals it. `text`: its `attestationText`. */
  signAside(text: string): Promise<string>;
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
  const signer = nameKey(createPublicKey(key));
  const signed = (message: Buffer) => sign(null, message, key).toString("base64url");
  return {
    publicKey: signer,
    attest(subjects) {
      const sorted = [...new Set(subjects)].sort();
      const signature = signed(attestationMessage(attestationText(signer, sorted)));
      return seal(Attestation, { signer, subjects: sorted, signature });
    },
    signAside: (text) =>
      new Promise((done, failed) => {
        sign(null, attestationMessage(text), key, (error, bytes) =>
          error === null ? done(bytes.toString("base64url")) : failed(error),
        );
      }),
    signHead(head) {
      const whole = { ...head, signer };
      return seal(BookHead, { ...whole, signature: signed(headMessage(whole)) });
    },
  };
}

export function newKeyPem(): string {
  return generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }) as string;
}
