/** Who records, and whose signatures count: the user's own key, made if there is none, and the keys trusted beside it. */
import type { PublicKey, Signer } from "../../contract/index.ts";
import { ensureKey, type Keyring, ownKeyring, trustedKeys } from "../open/index.ts";

export interface Identity {
  readonly signer: Signer;
  /** Whose signatures count besides our own. */
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

/** Of a book that has a signer already. */
export function identityWith(signer: Signer): Identity {
  return { signer, trusts: trustedBy(ownKeyring()) };
}

function trustedBy(keyring: Keyring): Identity["trusts"] {
  const trusted = trustedKeys(keyring, () => {});
  return (key) => trusted.has(key);
}
