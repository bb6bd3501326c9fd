/** Seals and opens the routers that rollouts name: the collecting process seals, the recording gateway reads.
 *  In: a router, a book. Out: its record; or, from the record, the chooser of a gateway. The opened router must have
 *  the digest that the record states, because choices are logged under this digest. If the reader requires trust, a
 *  trusted key must have signed the record and the revision of its policy. */
import { type Digest, parseId, RollbookError, short } from "../../base/index.ts";
import type { Choose } from "../../collect/gateway/index.ts";
import { priceByLength } from "../../collect/sim/index.ts";
import {
  NamedRouter,
  PolicyRevision,
  type PublicKey,
  type RevisionKey,
  type Sealed,
  type Signer,
  seal,
} from "../../contract/index.ts";
import {
  type Checkpoint,
  type Constraints,
  type DecisionPolicy,
  digestRouter,
  parseStaticTable,
  policyOf,
  type Router,
} from "../../policy/index.ts";
import { declaredSoftmax, serveRouter } from "../../serve/index.ts";
import { makeSealer, readRecord } from "../../store/index.ts";
import { type OpenBook, requireTrusted, splitByTrust, type TrustingBook } from "../open/index.ts";
import { checkpointOf, type Trusts } from "./policy-releases.ts";

export async function sealNamedRouter(
  book: OpenBook,
  router: Router,
  { family, seed, signer }: { family: string; seed: bigint; signer: Signer },
): Promise<Sealed<NamedRouter>> {
  const { policy, table, floor, exploration, constraints } = router;
  const record = seal(NamedRouter, {
    family: parseId(family),
    router: digestRouter(router),
    table: table.source,
    floor,
    exploration,
    seed,
    ...(policy === undefined ? {} : { policy: namedPolicy(policy) }),
    ...(constraints === undefined ? {} : { constraints }),
  });
  if (!(await isSignedBy(book, record, signer.publicKey)))
    await makeSealer(book.store, signer).add({ envelope: record, blobs: [record] });
  return record;
}

/** Serves as `loadRouter` of a gateway. `trusts` tells which signatures count (default: as the book requires). */
export async function openNamedRouter(
  book: OpenBook,
  digest: Digest,
  { trusts, log }: { trusts?: Trusts | undefined; log?: ((line: string) => void) | undefined } = {},
): Promise<Choose> {
  const { store } = book;
  const required = trusts === undefined ? book.required : { has: (key: string) => trusts(key as PublicKey) };
  const record = await readRecord(store, NamedRouter, digest);
  if (required !== undefined)
    await requireTrusted({ store, required }, await book.index(), [{ digest, kind: NamedRouter.kind }]);
  const { family, seed } = record;
  const checkpoint = await checkpointIn(book, record, required);
  const policy = checkpoint === undefined ? declaredPolicy(record) : policyOf(checkpoint);
  const router: Router = { ...settingsOf(record), ...(policy === undefined ? {} : { policy }) };
  requireSame(record, digestRouter(router), digest);
  const served = serveRouter(router, {
    ...{ family, seed, model: checkpoint?.model, clock: book.clock, log },
    why: `router-${short(record.router)} chooses for the rollouts of this run`,
  });
  return served.choose;
}

/** The router of that digest, if the book has a record of it. Needs no trust: a record whose parts give another digest
 *  is not of this router. */
export async function recordedRouter(book: OpenBook, router: Digest): Promise<RecordedRouter | undefined> {
  for (const { digest } of (await book.index()).ofKind(NamedRouter.kind)) {
    const record = await readRecord(book.store, NamedRouter, digest);
    if (record.router !== router) continue;
    const { policy } = record;
    const by = policy?.kind === "checkpoint" ? { revision: policy.revision } : declaredPolicy(record);
    const found = { ...settingsOf(record), ...(by === undefined ? {} : { policy: by }) };
    if (digestRouter(found) === router) return found;
  }
  return undefined;
}

export interface RecordedRouter extends Omit<Router, "policy"> {
  readonly policy?: Pick<DecisionPolicy, "revision" | "declared">;
}

function settingsOf({ table, floor, exploration, constraints }: NamedRouter): Omit<Router, "policy"> {
  return {
    ...{ table: parseStaticTable(JSON.stringify(table), "a named router"), floor, exploration },
    ...(constraints === undefined ? {} : { constraints: constraints as Constraints }),
  };
}

function namedPolicy(policy: DecisionPolicy): NamedRouter["policy"] {
  const { declared } = policy;
  if (declared !== undefined)
    return { kind: "declared-softmax", ...declared, candidates: [...declared.candidates] };
  return "temperature" in policy
    ? { kind: "price-by-length", temperature: policy.temperature as number }
    : { kind: "checkpoint", revision: policy.revision };
}

function declaredPolicy({ family, policy }: NamedRouter): DecisionPolicy | undefined {
  if (policy?.kind === "declared-softmax") {
    const { kind: _, ...declared } = policy;
    return declaredSoftmax(family, declared);
  }
  return policy?.kind === "price-by-length" ? priceByLength(policy.temperature) : undefined;
}

/** The presence of the record proves nothing: it may be imported, with the signature of another key or without one. */
async function isSignedBy(book: OpenBook, record: Sealed<NamedRouter>, signer: PublicKey): Promise<boolean> {
  const { store } = book;
  if (!(await store.has(record.digest))) return false;
  const required = { has: (key: string) => key === signer };
  const { trusted } = await splitByTrust({ store, required }, await book.index(), [record]);
  return trusted.length > 0;
}

async function checkpointIn(
  book: OpenBook,
  { policy }: NamedRouter,
  required: TrustingBook["required"],
): Promise<Checkpoint | undefined> {
  if (policy?.kind !== "checkpoint") return undefined;
  if (required !== undefined) await requireTrustedRevision(book, policy.revision, required);
  const found = await checkpointOf(book, policy.revision, { required });
  if (found !== undefined) return found;
  const { id, digest } = policy.revision;
  throw new RollbookError(
    "missing-blob",
    { revision: id, digest },
    `the book holds no checkpoint of revision ${id} (${digest}). Train it from this book.`,
  );
}

/** One trusted signature is enough, because the same weights may be stored under several names. */
async function requireTrustedRevision(
  book: OpenBook,
  revision: RevisionKey,
  required: TrustingBook["required"],
): Promise<void> {
  const { store } = book;
  const index = await book.index();
  const named = index.ofKind(PolicyRevision.kind).filter(({ fields }) => fields.digest === revision.digest);
  const { trusted } = await splitByTrust({ store, required }, index, named);
  if (trusted.length === 0) await requireTrusted({ store, required }, index, named);
}

function requireSame({ router }: NamedRouter, actual: Digest, record: Digest): void {
  if (actual === router) return;
  throw new RollbookError(
    "digest-mismatch",
    { record, expected: router, actual },
    `the named router ${record} says that its router is ${router}, and its parts give ${actual}. Seal it again.`,
  );
}
