/** Manages the signing key and the keys trusted beside it. They live outside every book, so that a book can be given
 *  away.
 *  In: a directory. Out: signer and trusted keys. Does not decide what trust means: `verify` reports it. */
import {
  chmodSync,
  existsSync,
  linkSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { isRollbookError, parseId, RollbookError } from "../../base/index.ts";
import { newKeyPem, type PublicKey, publicKey, type Signer, signerFromPem } from "../../contract/index.ts";
import { makeDirectory } from "../../store/index.ts";

interface TrustedKey {
  readonly key: PublicKey;
  readonly name: string;
}

export interface Keyring {
  readonly keyPath: string;
  readonly trustPath: string;
}

export function keyringOf(io: {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}): Keyring {
  return keyringAt(io.env.ROLLBOOK_HOME || join(io.home, ".config", "rollbook"));
}

/** Keyring of the user: in $ROLLBOOK_HOME, else in ~/.config/rollbook. */
export function ownKeyring(): Keyring {
  return keyringOf({ env: process.env, home: homedir() });
}

export function keyringAt(directory: string): Keyring {
  return { keyPath: join(directory, "key.pem"), trustPath: join(directory, "trusted-keys") };
}

/** Undefined if there is no key yet. */
export function loadSigner(keyring: Keyring): Signer | undefined {
  if (!existsSync(keyring.keyPath)) return undefined;
  requirePrivate(keyring.keyPath);
  try {
    return signerFromPem(readFileSync(keyring.keyPath, "utf8"));
  } catch (error) {
    if (!isRollbookError(error)) throw error;
    throw new RollbookError(
      error.code,
      { path: keyring.keyPath, ...error.fields },
      `${keyring.keyPath}: ${error.message}`,
      { cause: error },
    );
  }
}

/** Another user who can read a key may have copied it, so it must not sign. Windows has no such file modes. */
function requirePrivate(path: string): void {
  if (process.platform === "win32" || (statSync(path).mode & 0o077) === 0) return;
  throw new RollbookError(
    "key-exposed",
    { path },
    `others may read the private key ${path}, so it signs nothing. Run \`chmod 600 ${path}\`, or put a new one in its place with \`rollbook keys new --force\`, after which this one is not trusted.`,
  );
}

/** Creates the key. With `replace`, the new key replaces the old one, whose signatures stay trusted if it can be
 *  read. */
export function createKey(keyring: Keyring, options: { replace?: boolean } = {}): Signer {
  if (existsSync(keyring.keyPath) && options.replace !== true) {
    throw new RollbookError(
      "key-exists",
      { path: keyring.keyPath },
      `${keyring.keyPath} already exists. Keep it, or replace it with --force.`,
    );
  }
  const old = loadReadable(keyring);
  const pem = newKeyPem();
  makePrivateDirectory(keyring);
  const temporary = `${keyring.keyPath}.new`;
  writeFileSync(temporary, pem, { mode: 0o600, flush: true });
  chmodSync(temporary, 0o600);
  if (old !== undefined) trustKey(keyring, { key: old.publicKey, name: "former-key" });
  renameSync(temporary, keyring.keyPath);
  return signerFromPem(pem);
}

/** Loads the key, or creates it. If several processes create one at the same time, the first one wins. */
export function ensureKey(keyring: Keyring): { signer: Signer; created: boolean } {
  const known = loadSigner(keyring);
  if (known !== undefined) return { signer: known, created: false };
  makePrivateDirectory(keyring);
  const own = `${keyring.keyPath}.${process.pid}`;
  writeFileSync(own, newKeyPem(), { mode: 0o600, flush: true });
  try {
    linkSync(own, keyring.keyPath);
    return { signer: loadSigner(keyring)!, created: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return { signer: loadSigner(keyring)!, created: false };
  } finally {
    unlinkSync(own);
  }
}

function loadReadable(keyring: Keyring): Signer | undefined {
  try {
    return loadSigner(keyring);
  } catch (error) {
    // A broken or an exposed key does not stay trusted.
    if (isRollbookError(error, "bad-signature") || isRollbookError(error, "key-exposed")) return undefined;
    throw error;
  }
}

export function parsePublicKey(text: string): PublicKey {
  if (isPublicKey(text)) return text;
  throw new RollbookError(
    "wrong-usage",
    { key: text },
    `${JSON.stringify(text.slice(0, 80))} is not a public key. One looks like ed25519:<43 characters>; \`rollbook keys show\` prints yours.`,
  );
}

/** Keys listed in `trusted-keys`: one `ed25519:… name` per line, # begins a comment. */
export function listTrusted(keyring: Keyring): TrustedKey[] {
  if (!existsSync(keyring.trustPath)) return [];
  const lines = readFileSync(keyring.trustPath, "utf8").split("\n");
  return lines.flatMap((line, i) => {
    const [key, ...name] = line.replace(/#.*$/, "").trim().split(/\s+/);
    if (key === undefined || key === "") return [];
    if (isPublicKey(key)) return [{ key, name: name.join(" ") }];
    throw new RollbookError(
      "bad-key",
      { path: keyring.trustPath, line: i + 1 },
      `${keyring.trustPath}:${i + 1}: not a public key. Write one \`ed25519:… name\` a line.`,
    );
  });
}

/** Returns false if the key was already trusted. */
export function trustKey(keyring: Keyring, { key, name }: TrustedKey): boolean {
  parseId(name, "name");
  const known = listTrusted(keyring);
  if (known.some((each) => each.key === key)) return false;
  makePrivateDirectory(keyring);
  const text = existsSync(keyring.trustPath) ? readFileSync(keyring.trustPath, "utf8") : "";
  const before = text === "" || text.endsWith("\n") ? text : `${text}\n`;
  writeTrust(keyring, `${before}${key} ${name}\n`);
  return true;
}

/** Returns false if the key was not listed. Comments and the other lines stay unchanged. */
export function untrustKey(keyring: Keyring, key: PublicKey): boolean {
  if (!listTrusted(keyring).some((each) => each.key === key)) return false;
  const lines = readFileSync(keyring.trustPath, "utf8").split("\n");
  const kept = lines.filter((line) => line.replace(/#.*$/, "").trim().split(/\s+/)[0] !== key);
  writeTrust(keyring, kept.join("\n"));
  return true;
}

function writeTrust(keyring: Keyring, text: string): void {
  const temporary = `${keyring.trustPath}.new`;
  writeFileSync(temporary, text, { flush: true });
  renameSync(temporary, keyring.trustPath);
}

/** Keys whose signatures count: the listed keys and the user's own key. Verifying needs no private key, so an own key
 *  that cannot be used is reported to `onUnusable` and does not count. */
export function trustedKeys(
  keyring: Keyring,
  onUnusable: (error: RollbookError) => void,
): Map<PublicKey, string> {
  const names = new Map(listTrusted(keyring).map((each) => [each.key, each.name]));
  try {
    const own = loadSigner(keyring);
    if (own !== undefined) names.set(own.publicKey, "your key");
  } catch (error) {
    if (!isRollbookError(error)) throw error;
    onUnusable(error);
  }
  return names;
}

/** Accepts only the spelling of attestations: trust in another spelling of the same key would have no effect. */
function isPublicKey(text: string): text is PublicKey {
  return publicKey.safeParse(text).success;
}

function makePrivateDirectory(keyring: Keyring): void {
  makeDirectory(join(keyring.keyPath, ".."), { mode: 0o700 });
}
