/** Provides the signing identity of a recorder: the user's own key, created if there is none, and the keys trusted
 *  beside it. */
import type { PublicKey, Signer } from "../../contract/index.ts";
import { ensureKey, type Keyring, ownKeyring, trustedKeys } from "../open/index.ts";

export interface Identity {
  readonly signer: Signer;
  /** True for keys, other than our own, whose signatures count. */
  readonly trusts: (key: PublicKey) => boolean;
}

export function identityOf(
  keyring: Keyring = ownKeyring(),
  onNewKey: (path: string) => void = () => {},
): Identity {
  const { signer, created } = ensureKey(keyring);
  if (created) onNewKey(keyring.keyPath);
  return { signer, trusts: trustedBy(keyring) };
}

/** Identity for a book that already has a signer. */
export function identityWith(signer: Signer): Identity {
  return { signer, trusts: trustedBy(ownKeyring()) };
}

function trustedBy(keyring: Keyring): Identity["trusts"] {
  const trusted = trustedKeys(keyring, () => {});
  return (key) => trusted.has(key);
}
