/** Reads the released policies of a book: passing verdicts, rollbacks, and the checkpoints behind them.
 *  In: an open book. Out: the `PolicyReleases` that `openRouter` needs. Each record is read once, because records
 *  never change. */
import type { Digest } from "../../base/index.ts";
import {
  FloorPromise,
  GateVerdict,
  PolicyRevision,
  type PublicKey,
  type RecordOf,
  type RecordType,
  type RevisionKey,
  Rollback,
  type Sealed,
  seal,
} from "../../contract/index.ts";
import { type Checkpoint, openCheckpoint } from "../../policy/index.ts";
import {
  isPolicyTakenBack,
  type PolicyReleases,
  type RouterConfig,
  releasedRevisionsOf,
} from "../../serve/index.ts";
import { readRecord } from "../../store/index.ts";
import {
  type BookIndex,
  type IndexedRecord,
  type OpenBook,
  ownKeyring,
  splitByTrust,
  type TrustingBook,
  trustedKeys,
} from "../open/index.ts";

/** True for keys whose signatures count. */
export type Trusts = (key: PublicKey) => boolean;

/** `trusts`: verdicts and rollbacks without a signature of such a key do not count, and `log` reports them once
 *  (default: as the book requires). */
export function policyReleasesOf(
  book: OpenBook,
  { trusts, log = () => {} }: { trusts?: Trusts | undefined; log?: (line: string) => void } = {},
): PolicyReleases {
  const required = trusts === undefined ? book.required : { has: (key: string) => trusts(key as PublicKey) };
  const reader = recordReader(book);
  const told = new Set<Digest>();
  const trustedOf = async (index: BookIndex, records: readonly IndexedRecord[]) => {
    const { trusted, untrusted } = await splitByTrust({ store: book.store, required }, index, records);
    for (const { digest, kind } of untrusted) {
      if (!told.has(digest))
        log(`router: the ${kind} ${digest} is not signed by a trusted key: it is refused`);
      told.add(digest);
    }
    return trusted;
  };
  return {
    async standing() {
      const index = await book.index();
      const passing = index.ofKind(GateVerdict.kind).filter(({ fields }) => fields.outcome === "pass");
      const verdicts: Sealed<GateVerdict>[] = [];
      for (const { digest } of await trustedOf(index, passing))
        verdicts.push(await reader(GateVerdict, digest));
      const rollbacks: Rollback[] = [];
      for (const { digest } of await trustedOf(index, index.ofKind(Rollback.kind)))
        rollbacks.push((await reader(Rollback, digest)).record);
      const distrusted = passing.length - verdicts.length;
      return { verdicts: verdicts.sort(newestFirst), rollbacks, distrusted };
    },
    checkpoint: (revision, family) => checkpointOf(book, revision, { family, required }),
  };
}

/** Newest released policy of a family, or undefined. A router serves an older one if this one does not fit its
 *  configuration. */
export async function newestRelease(book: OpenBook, family: string): Promise<RevisionKey | undefined> {
  const index = await book.index();
  const ofFamily = index.ofKind(PolicyRevision.kind).filter((each) => each.family === family);
  const known = new Set(ofFamily.map(({ fields }) => fields.digest));
  const released = releasedRevisionsOf(await policyReleasesOf(book).standing());
  return released.find(({ revision }) => known.has(revision.digest))?.revision;
}

/** Records of the newest released policy of each family. */
export async function newestReleases(book: OpenBook): Promise<ReadonlySet<Digest>> {
  const revisions = (await book.index()).ofKind(PolicyRevision.kind);
  const records = new Map<string, Digest>();
  for (const { revision } of releasedRevisionsOf(await policyReleasesOf(book).standing()))
    for (const { digest, family, id, fields } of revisions)
      if (id === revision.id && fields.digest === revision.digest && !records.has(family!))
        records.set(family!, digest);
  return new Set(records.values());
}

/** True if a rollback withdrew the policy, and no verdict has passed it since. */
export async function isTakenBack(book: OpenBook, policy: Digest): Promise<boolean> {
  return isPolicyTakenBack(policy, await policyReleasesOf(book).standing());
}

/** Trust rule of a configuration; undefined if every verdict counts. */
export function trustsOf(
  { trust }: Pick<RouterConfig, "trust">,
  given: Trusts | undefined,
): Trusts | undefined {
  if (trust === "any" || given !== undefined) return trust === "any" ? undefined : given;
  const trusted = trustedKeys(ownKeyring(), () => {});
  return (key) => trusted.has(key);
}

/** Checkpoint of a policy, by the digest of its weights; undefined if the book does not hold it. */
export async function checkpointOf(
  book: OpenBook,
  { digest }: Pick<RevisionKey, "digest">,
  { family, required = book.required }: { family?: string | undefined } & Pick<TrustingBook, "required"> = {},
): Promise<Checkpoint | undefined> {
  const index = await book.index();
  const known = index
    .ofKind(PolicyRevision.kind)
    .filter((each) => each.fields.digest === digest && (family === undefined || each.family === family));
  const blob = known.length === 0 ? undefined : await book.store.get(digest);
  if (blob === undefined) return undefined;
  // The same weights may have several names; the first by id stands for all.
  const record = await readRecord(book.store, PolicyRevision, known[0]!.digest);
  const promise = await promiseOf({ store: book.store, required }, index, digest);
  const checkpoint = openCheckpoint(blob.bytes, record, `revision ${record.id} of the book`);
  return { ...checkpoint, ...(promise === undefined ? {} : { promise }) };
}

async function promiseOf(
  book: TrustingBook,
  index: BookIndex,
  policy: Digest,
): Promise<Sealed<FloorPromise> | undefined> {
  let newest: FloorPromise | undefined;
  const { trusted } = await splitByTrust(book, index, index.ofKind(FloorPromise.kind));
  for (const { digest } of trusted) {
    const record = await readRecord(book.store, FloorPromise, digest);
    if (record.policy.digest === policy && record.atMs >= (newest?.atMs ?? 0)) newest = record;
  }
  return newest === undefined ? undefined : seal(FloorPromise, newest);
}

type RecordReader = <T extends RecordType>(type: T, digest: Digest) => Promise<Sealed<RecordOf<T>>>;

function recordReader({ store }: OpenBook): RecordReader {
  const known = new Map<Digest, Promise<unknown>>();
  return <T extends RecordType>(type: T, digest: Digest) => {
    let found = known.get(digest);
    if (found === undefined) {
      found = readRecord(store, type, digest).then((record) => seal(type, record));
      known.set(digest, found);
      // A record that could not be read may be readable at the next look.
      found.catch(() => known.delete(digest));
    }
    return found as Promise<Sealed<RecordOf<T>>>;
  };
}

function newestFirst(a: Sealed<GateVerdict>, b: Sealed<GateVerdict>): number {
  return b.record.atMs - a.record.atMs || (a.digest < b.digest ? 1 : -1);
}

/** Verdict entry that released this router, as the gateway names it: the newest that passes it. Without one, the
 *  newest entry that judged it, because it states the judged floor and exploration. */
export async function judgedAs(book: OpenBook, router: Digest) {
  const verdicts: Sealed<GateVerdict>[] = [];
  for (const { digest } of (await book.index()).ofKind(GateVerdict.kind))
    verdicts.push(seal(GateVerdict, await readRecord(book.store, GateVerdict, digest)));
  const judged = verdicts.sort(newestFirst).flatMap(({ digest, record: { passed, candidates } }) =>
    candidates
      .filter((each) => each.router.digest === router)
      .map((each) => ({
        ...each,
        verdict: digest,
        isReleased: each.outcome === "pass" && each.revision.digest === passed?.digest,
      })),
  );
  return judged.find(({ isReleased }) => isReleased) ?? judged[0];
}
