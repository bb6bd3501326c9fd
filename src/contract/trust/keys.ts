/** Ed25519 keys as short names, and signatures as text. Does not decide trust. */
import { createPublicKey, type KeyObject } from "node:crypto";
import * as z from "zod";

/** `ed25519:` and the base64url of the 32 key bytes: short enough to serve as the name of the key. */
export type PublicKey = `ed25519:${string}`;

const KEY_PREFIX = "ed25519:";

/** The last base64url character has spare bits, which must be zero: a second spelling of a key would count as a second
 *  signer. */
export const publicKey = z
  .string()
  .regex(
    /^ed25519:[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/,
    "is not a public key of the form ed25519:<43 base64url characters>",
  ) as unknown as z.ZodType<PublicKey, string>;
export const signature = z
  .string()
  .regex(/^[A-Za-z0-9_-]{85}[AQgw]$/, "is not a signature of 86 base64url characters");

/** Creating a key object costs a fifth of a verification, and a book has few signers. */
const keys = new Map<PublicKey, KeyObject>();
const KEPT_KEYS = 64;

export function keyOf(signer: PublicKey): KeyObject {
  const known = keys.get(signer);
  if (known !== undefined) return known;
  const x = signer.slice(KEY_PREFIX.length);
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  if (keys.size >= KEPT_KEYS) keys.clear();
  keys.set(signer, key);
  return key;
}

export function nameKey(key: KeyObject): PublicKey {
  return `ed25519:${key.export({ format: "jwk" }).x}` as PublicKey;
}
