/** Recomputes everything that a book claims: for the whole book, or for records with all they depend on.
 *  In: an open book, names. Out: reports. A run leads to its windows, a window to its revision, a revision to its
 *  batches, a batch to its rollouts, a rollout to its calls. */
import type { Digest } from "../../base/index.ts";
import {
  Call,
  LoopEnvelope,
  LoopTransition,
  PolicyRevision,
  RolloutContent,
  RolloutEnvelope,
  TrainerBatch,
} from "../../contract/index.ts";
import type { VerifyOptions, VerifyReport } from "../../keep/verify/index.ts";
import { type Catalog, openCatalog } from "../../store/index.ts";
import {
  artifactsOf,
  type BookIndex,
  CatalogComparison,
  type CatalogDifference,
  catalogIndex,
  mayWrite,
  nameOf,
  type OpenBook,
  ownKeyring,
  resolveArtifact,
  resolveBatch,
  resolveRecord,
  trustedKeys,
} from "../open/index.ts";
import { type Repair, repairsOf } from "./repairs.ts";

/** Without `trustedKeys`, signatures count if made by the user's own key or by the keys listed beside it. */
export type VerifyRequest = Readonly<VerifyOptions>;

export interface Verified {
  readonly what: string;
  readonly digest?: Digest;
  readonly report: VerifyReport;
  /** Records reached from one record; set only if one record was verified. */
  readonly reached?: Reached;
  /** Ids of the rollouts that have a problem, if the catalog remembers them; set only if the whole book was
   *  verified. */
  readonly damagedRollouts?: readonly string[];
  /** How the damaged records come back from a copy of the book. */
  readonly repairs: readonly Repair[];
  /** Differences between the catalog and the bytes; undefined if the catalog was not checked. */
  readonly catalog?: readonly CatalogDifference[];
  /** Time and reason of the last rebuild of the catalog from the bytes. The catalog remembers no loss from before
   *  it. */
  readonly catalogMade?: ReturnType<Catalog["origin"]>;
}

interface Reached {
  readonly batches: readonly Digest[];
  readonly rollouts: number;
  readonly calls: number;
}

export async function verifyBook(book: OpenBook, options: VerifyRequest = {}): Promise<Verified> {
  const { store, root } = book;
  const request = { ...options, trustedKeys: options.trustedKeys ?? ownTrusted() };
  const what = `book ${root}`;
  const { verifyBook: verifyStore } = await import("../../keep/verify/index.ts");
  // The catalog lies in the book. If the directory is read-only, there is no catalog to trust or to repair.
  if (root === "" || !mayWrite(root)) {
    const report = await verifyStore(store, request);
    return { what, report, repairs: repairsOf(report.problems) };
  }
  const catalog = openCatalog(root);
  try {
    await catalog.sync();
    const comparison = new CatalogComparison(catalog);
    const report = await verifyStore(comparison.watch(store), request);
    const differences = await comparison.finish(store, report);
    const struck = report.problems.flatMap(({ digest }) => digest ?? []);
    const index = catalogIndex(catalog);
    const damagedRollouts = [...new Set(struck.flatMap((digest) => index.rolloutsWith(digest)))].sort();
    const repairs = repairsOf(report.problems, index);
    return { what, report, damagedRollouts, repairs, catalog: differences, catalogMade: catalog.origin() };
  } finally {
    catalog.close();
  }
}

/** Verifies any record, given by id, digest or the first digits of one, with everything it depends on. */
export async function verifyNamed(
  book: OpenBook,
  name: string,
  request: VerifyRequest = {},
): Promise<Verified[]> {
  const index = await book.index();
  const record = resolveRecord(index, name);
  const isContent = record.kind === RolloutContent.kind;
  const roots = isContent ? resolveArtifact(index, record.digest).envelopes : [record.digest];
  return verifyRoots(
    book,
    roots.map((digest) => ({ what: nameOf(record), digest })),
    request,
  );
}

/** Verifies rollouts (default: all rollouts of the book). */
export async function verifyArtifacts(
  book: OpenBook,
  names: readonly string[] = [],
  request: VerifyRequest = {},
): Promise<Verified[]> {
  const index = await book.index();
  const chosen = names.length === 0 ? artifactsOf(index) : names.map((name) => resolveArtifact(index, name));
  const roots = chosen.flatMap(({ content, envelopes }) =>
    envelopes.map((digest) => ({ what: nameOf(content), digest })),
  );
  return verifyRoots(book, roots, request);
}

export async function verifyBatches(
  book: OpenBook,
  names: readonly string[],
  request: VerifyRequest = {},
): Promise<Verified[]> {
  const index = await book.index();
  const roots = names
    .map((name) => resolveBatch(index, name))
    .map((record) => ({ what: nameOf(record), digest: record.digest }));
  return verifyRoots(book, roots, request);
}

/** A transition names rollouts without their envelopes. The batch, the revision and the verdict of its step are named by
 *  its own envelope. */
function runEnvelopes(index: BookIndex): (subject: { digest: Digest; kind: string }) => readonly Digest[] {
  const steps = new Map<unknown, Digest[]>();
  for (const { digest, fields } of index.ofKind(LoopEnvelope.kind))
    steps.set(fields.transition, [...(steps.get(fields.transition) ?? []), digest]);
  return ({ digest, kind }) =>
    kind === RolloutContent.kind
      ? index.about([digest], [RolloutEnvelope.kind]).map((each) => each.digest)
      : (steps.get(digest) ?? []);
}

async function verifyRoots(
  book: OpenBook,
  roots: readonly { what: string; digest: Digest }[],
  request: VerifyRequest,
): Promise<Verified[]> {
  // Loaded on demand: commands on rollouts and batches offer verification beside lighter work.
  const { verifyRecord } = await import("../../keep/verify/index.ts");
  const index = await book.index();
  const keys = [...(request.trustedKeys ?? ownTrusted())];
  const recorded = new Set(index.ofKind(PolicyRevision.kind).map(({ family, id }) => `${family}/${id}`));
  const verified: Verified[] = [];
  for (const { what, digest } of roots) {
    const batches: Digest[] = [];
    const report = await verifyRecord(book.store, digest, {
      trustedKeys: keys,
      attestationsOf: (subject) => index.attestationsOf(subject),
      ...(index.record(digest)?.kind === LoopTransition.kind ? { envelopesOf: runEnvelopes(index) } : {}),
      tombstonesOf: (erased) => index.tombstonesOf(erased),
      onBlob: (blob) => {
        if (blob.kind === TrainerBatch.kind) batches.push(blob.digest);
      },
    });
    const { [RolloutContent.kind]: rollouts = 0, [Call.kind]: calls = 0 } = report.counts;
    // A rollout does not lead to the record of its revision, so only the index of the book knows if the record exists.
    const unrecordedRevisions = report.unrecordedRevisions.filter((name) => !recorded.has(name));
    const reached = { batches, rollouts, calls };
    const repairs = repairsOf(report.problems, index);
    verified.push({ what, digest, reached, repairs, report: { ...report, unrecordedRevisions } });
  }
  return verified;
}

function ownTrusted(): Iterable<string> {
  return trustedKeys(ownKeyring(), () => {}).keys();
}
