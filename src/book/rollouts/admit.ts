/** Checks artifacts that are in a book already and keeps what was found: receipts, verdicts, releases.
 *  In: artifacts, and a target with budgets or the name of a validator. Out: what was said of each. A result that says
 *  the same as the one that stands is not written again, so that what was released stays released. */
import { canonicalize, compareUtf8, type Digest, type Id } from "../../base/index.ts";
import {
  Call,
  type PolicyRevision,
  PolicyRevision as PolicyRevisionType,
  Receipt,
  Release,
  RolloutContent,
  RolloutEnvelope,
  type Sealed,
  type SealedBlob,
  type Signer,
  Verdict,
} from "../../contract/index.ts";
import {
  checkFreshness,
  FRESHNESS_PROFILES,
  type FreshnessBudgets,
  freshnessReceipt,
  freshnessVerdict,
  makeAdmission,
  releaseQuarantined,
  validateBundle,
} from "../../keep/admit/index.ts";
import { type BlobStore, makeSealer, readRecord } from "../../store/index.ts";
import { type Artifact, type BookIndex, type OpenBook, resolveRevision } from "../open/index.ts";

export interface AdmitRequest {
  readonly store: Pick<BlobStore, "get" | "has" | "put" | "flush">;
  readonly index: BookIndex;
  readonly artifacts: readonly Artifact[];
  readonly nowMs: number;
  readonly signer?: Signer | undefined;
}

/** What was said of one artifact. */
export interface AdmissionResult {
  readonly rolloutId: string;
  readonly content: Digest;
  readonly verdict: Digest;
  readonly validator: string;
  readonly disposition: Verdict["disposition"];
  readonly codes: Verdict["codes"];
  readonly message: string;
  /** False: the verdict that stood says the same. */
  readonly added: boolean;
}

/** The records of all revisions of the book, by family and id. */
export async function revisionsOf(
  store: Pick<BlobStore, "get">,
  index: BookIndex,
): Promise<(family: string, id: string) => PolicyRevision | undefined> {
  const known = new Map<string, PolicyRevision>();
  for (const { digest } of index.ofKind(PolicyRevisionType.kind)) {
    const revision = await readRecord(store, PolicyRevisionType, digest);
    const key = JSON.stringify([revision.family, revision.id]);
    // One that was only logged does not know when it was produced; another record of it may.
    if ((known.get(key)?.producedAtMs ?? 0) === 0) known.set(key, revision);
  }
  return (family, id) => known.get(JSON.stringify([family, id]));
}

/** The admission check of what is submitted to a gateway or a launch: freshness against `target`, by drift 3/5 unless told otherwise. */
export async function admissionFor(
  book: OpenBook,
  { target: name, budgets }: { target: string; budgets?: FreshnessBudgets | undefined },
): Promise<ReturnType<typeof makeAdmission>> {
  const index = await book.index();
  const target = await readRecord(book.store, PolicyRevisionType, resolveRevision(index, name).digest);
  const revisions = await revisionsOf(book.store, index);
  return makeAdmission({
    target: () => target,
    revision: ({ id }) => revisions(target.family, id),
    budgets: budgets ?? FRESHNESS_PROFILES.default,
  });
}

/** Freshness against `target`. A rollout counts as submitted when its first receipt was given, else now. */
export async function admitInBook(
  request: AdmitRequest & { readonly target: PolicyRevision; readonly budgets: FreshnessBudgets },
): Promise<AdmissionResult[]> {
  const { store, index, artifacts, nowMs, target, budgets } = request;
  const revisions = await revisionsOf(store, index);
  const submitted = firstReceipts(index);
  const atMs = afterAll(index, nowMs);
  const writer = new VerdictWriter(request);
  const results: AdmissionResult[] = [];
  for (const { content, envelopes } of artifacts) {
    const freshness = checkFreshness({
      content: await readRecord(store, RolloutContent, content.digest),
      envelope: await readRecord(store, RolloutEnvelope, envelopes[0]!),
      target,
      revision: ({ id }) => revisions(target.family, id),
      submittedAtMs: submitted.get(content.digest) ?? nowMs,
      budgets,
    });
    const subject = content.digest;
    const verdict = freshnessVerdict(freshness, { subject, family: target.family, atMs });
    const said = await writer.add(verdict, [freshnessReceipt(freshness, { subject, atMs: nowMs })]);
    results.push({ rolloutId: content.id!, content: content.digest, message: freshness.message, ...said });
  }
  await writer.commit();
  return results;
}

/** The validator's checks. Artifacts it has accepted before are what later ones may not repeat. */
export async function validateInBook(
  request: AdmitRequest & { readonly validator: Id },
): Promise<AdmissionResult[]> {
  const { store, index, artifacts, validator } = request;
  const nowMs = afterAll(index, request.nowMs);
  const read = async ({ content, envelopes }: Artifact) => {
    const [digest, envelope] = [content.digest, envelopes[0]!];
    return {
      content: { digest, record: await readRecord(store, RolloutContent, digest) },
      envelope: { digest: envelope, record: await readRecord(store, RolloutEnvelope, envelope) },
    } as Parameters<typeof validateBundle>[0][number];
  };
  const verdicts = await validateBundle(await Promise.all(artifacts.map(read)), {
    ...{ validator, nowMs, sampleBps: 0, nonce: "" },
    has: (digest) => store.has(digest),
    calls: ({ calls }) => Promise.all(calls.map((each) => readRecord(store, Call, each))),
    earlier: await Promise.all(acceptedBy(request).map(read)),
  });
  const names = new Map(artifacts.map(({ content }) => [content.digest, content.id!]));
  const writer = new VerdictWriter(request);
  const results: AdmissionResult[] = [];
  for (const verdict of verdicts) {
    const { subject, codes, disposition } = verdict.record;
    const message = codes.length === 0 ? disposition : `${disposition}: ${codes.join(", ")}`;
    const said = await writer.add(verdict, []);
    results.push({ rolloutId: names.get(subject)!, content: subject, message, ...said });
  }
  await writer.commit();
  return results.sort((a, b) => compareUtf8(a.rolloutId, b.rolloutId));
}

/** Lets the artifact into batches in spite of every verdict that quarantines it now. */
export async function releaseInBook(
  { store, index, nowMs, signer }: Omit<AdmitRequest, "artifacts">,
  subject: Digest,
  { by, reason }: { by: Id; reason: string },
): Promise<Sealed<Release>[]> {
  const released = new Set(
    index
      .ofKind(Release.kind)
      .filter(({ fields }) => fields.subject === subject)
      .map(({ fields }) => fields.verdict),
  );
  const releases: Sealed<Release>[] = [];
  for (const { digest, fields } of standingVerdicts(index).get(subject)?.values() ?? [])
    if (fields.disposition === "quarantined" && !released.has(digest)) {
      const record = await readRecord(store, Verdict, digest);
      releases.push(releaseQuarantined({ digest, record } as Sealed<Verdict>, { by, reason, atMs: nowMs }));
    }
  const sealer = makeSealer(store, signer);
  await Promise.all(releases.map((release) => sealer.add({ envelope: release, blobs: [release] })));
  return releases;
}

type Indexed = ReturnType<BookIndex["ofKind"]>[number];

/** The newest verdict of each validator and family, by subject. */
function standingVerdicts(index: BookIndex): Map<Digest, Map<string, Indexed>> {
  const standing = new Map<Digest, Map<string, Indexed>>();
  const ordered = index
    .ofKind(Verdict.kind)
    .sort((a, b) => (a.fields.atMs as number) - (b.fields.atMs as number) || (a.digest < b.digest ? -1 : 1));
  for (const verdict of ordered) {
    const subject = verdict.fields.subject as Digest;
    const own = standing.get(subject) ?? new Map<string, Indexed>();
    own.set(validatorKey(verdict.fields), verdict);
    standing.set(subject, own);
  }
  return standing;
}

function validatorKey({ validator, family }: { validator?: unknown; family?: unknown }): string {
  return JSON.stringify([validator, family ?? null]);
}

/** Artifacts outside `artifacts` that this validator let in. */
function acceptedBy({ index, artifacts, validator }: AdmitRequest & { validator: Id }): Artifact[] {
  const chosen = new Set(artifacts.map(({ content }) => content.digest));
  const envelopes = new Map<string, Digest>();
  for (const { digest, fields } of index.ofKind(RolloutEnvelope.kind))
    envelopes.set(fields.content as string, digest);
  const contents = new Map(index.ofKind(RolloutContent.kind).map((content) => [content.digest, content]));
  const accepted: Artifact[] = [];
  for (const [subject, verdicts] of standingVerdicts(index)) {
    const disposition = verdicts.get(validatorKey({ validator }))?.fields.disposition;
    const [content, envelope] = [contents.get(subject), envelopes.get(subject)];
    if (disposition !== "accepted" && disposition !== "normalized") continue;
    if (!chosen.has(subject) && content !== undefined && envelope !== undefined)
      accepted.push({ content, envelopes: [envelope] });
  }
  return accepted;
}

/** Writes verdicts that say something new. */
class VerdictWriter {
  readonly #store: AdmitRequest["store"];
  readonly #sealer: ReturnType<typeof makeSealer>;
  readonly #standing: Map<Digest, Map<string, Indexed>>;
  readonly #durable: Promise<void>[] = [];

  constructor({ store, index, signer }: AdmitRequest) {
    this.#store = store;
    this.#sealer = makeSealer(store, signer);
    this.#standing = standingVerdicts(index);
  }

  async add(
    verdict: Sealed<Verdict>,
    beside: readonly SealedBlob[],
  ): Promise<Pick<AdmissionResult, "verdict" | "validator" | "disposition" | "codes" | "added">> {
    const { subject, validator, disposition, codes } = verdict.record;
    const known = this.#standing.get(subject)?.get(validatorKey(verdict.record));
    const added =
      known === undefined ||
      unsaid(await readRecord(this.#store, Verdict, known.digest)) !== unsaid(verdict.record);
    if (added) {
      const others = beside.map(({ digest }) => digest);
      this.#durable.push(this.#sealer.add({ envelope: verdict, blobs: [...beside, verdict], others }));
    }
    return { verdict: added ? verdict.digest : known.digest, validator, disposition, codes, added };
  }

  async commit(): Promise<void> {
    await Promise.all(this.#durable);
  }
}

/** A verdict but for its time. Timers observe when they were read, which is a time too. */
function unsaid({ atMs: _, observations, ...rest }: Verdict): string {
  return canonicalize({ ...rest, observations: observations.filter(({ name }) => name !== "timers") });
}

/** Later than every verdict there is: the newest one stands, also where a clock was set back or stands still. */
function afterAll(index: BookIndex, nowMs: number): number {
  return index
    .ofKind(Verdict.kind)
    .reduce((at, { fields }) => Math.max(at, (fields.atMs as number) + 1), nowMs);
}

function firstReceipts(index: BookIndex): Map<Digest, number> {
  const first = new Map<Digest, number>();
  for (const { fields } of index.ofKind(Receipt.kind)) {
    const [subject, atMs] = [fields.subject as Digest, fields.atMs as number];
    first.set(subject, Math.min(atMs, first.get(subject) ?? atMs));
  }
  return first;
}
