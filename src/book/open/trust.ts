/** Refuses judgements that no trusted key has signed, if the reader requires trust.
 *  In: an open book, records. Out: an error that names the first untrusted record, or the trusted records. Checks
 *  signatures, not the records. */
import { type Digest, isRollbookError, RollbookError } from "../../base/index.ts";
import { Attestation, checkAttestation } from "../../contract/index.ts";
import { type BlobStore, readRecord } from "../../store/index.ts";
import type { BookIndex, IndexedRecord } from "./book-index.ts";
import { type Keyring, trustedKeys } from "./keyring.ts";

/** If this variable is set to anything but 0, every command refuses judgements without a signature of a trusted key. */
const REQUIRE_TRUSTED = "ROLLBOOK_REQUIRE_TRUSTED";

/** Keys that must have signed; undefined if the environment does not require trust. */
export function requiredKeys(
  env: Readonly<Record<string, string | undefined>>,
  keyring: Keyring,
): ReadonlySet<string> | undefined {
  const wanted = env[REQUIRE_TRUSTED] ?? "";
  return wanted === "" || wanted === "0" ? undefined : trustedSet(keyring);
}

export function trustedSet(keyring: Keyring): ReadonlySet<string> {
  return new Set(trustedKeys(keyring, () => {}).keys());
}

type Judgement = Pick<IndexedRecord, "digest" | "kind">;

type TrustedKeys = Pick<ReadonlySet<string>, "has">;

export interface TrustingBook {
  readonly store: Pick<BlobStore, "get">;
  readonly required?: TrustedKeys | undefined;
}

/** Throws unless a trusted key has signed all records. Does nothing if trust is not required. */
export async function requireTrusted(
  book: TrustingBook,
  index: BookIndex,
  records: readonly Judgement[],
): Promise<void> {
  const { untrusted } = await splitByTrust(book, index, records);
  const [first] = untrusted;
  if (first === undefined) return;
  const { length } = untrusted;
  const next =
    index.attestationsOf(first.digest).length > 0
      ? "Trust its signer with `rollbook keys trust` if you know who made it"
      : "It has no signature: make a key with `rollbook keys new`, then import the record or its log again, which signs it";
  throw new RollbookError(
    "not-trusted",
    { records: untrusted.map(({ digest }) => digest) },
    `${length === 1 ? "1 record that counts here is" : `${length} records that count here are`} not signed by a key you trust, first the ${first.kind} ${first.digest}. ${next}; \`rollbook verify --require-trusted\` counts all of them.`,
  );
}

/** Separates the records that a trusted key has signed; all of them if trust is not required. */
export async function splitByTrust<R extends Judgement>(
  { store, required }: TrustingBook,
  index: BookIndex,
  records: readonly R[],
): Promise<{ trusted: R[]; untrusted: R[] }> {
  if (required === undefined) return { trusted: [...records], untrusted: [] };
  const good = new Map<Digest, boolean>();
  const isGood = async (attestation: Digest) => {
    const known = good.get(attestation) ?? (await isTrustedSignature(store, attestation, required));
    good.set(attestation, known);
    return known;
  };
  const split = { trusted: [] as R[], untrusted: [] as R[] };
  for (const record of records) {
    let trusted = false;
    for (const attestation of index.attestationsOf(record.digest)) trusted ||= await isGood(attestation);
    (trusted ? split.trusted : split.untrusted).push(record);
  }
  return split;
}

async function isTrustedSignature(
  store: TrustingBook["store"],
  digest: Digest,
  required: TrustedKeys,
): Promise<boolean> {
  try {
    const attestation = await readRecord(store, Attestation, digest);
    if (!required.has(attestation.signer)) return false;
    checkAttestation(attestation);
    return true;
  } catch (error) {
    // A damaged or invalid signature does not count, and must not invalidate good ones; `verify` names it.
    if (isRollbookError(error)) return false;
    throw error;
  }
}
