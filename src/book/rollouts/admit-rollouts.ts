/** Admits rollouts of a book and stores the verdicts, which all training and evaluation obey.
 *  In: an open book, names, a target or a validator. Out: the verdict on each rollout. Verdicts and releases are sealed
 *  records. */
import { compareUtf8, type Digest, type Id, parseId, RollbookError } from "../../base/index.ts";
import {
  Call,
  PolicyRevision,
  QuarantineRelease,
  Receipt,
  RolloutContent,
  RolloutEnvelope,
  type Sealed,
  Verdict,
} from "../../contract/index.ts";
import {
  checkFreshness,
  explainFreshness,
  FRESHNESS_PROFILES,
  type FreshnessBudgets,
  type FreshnessRequest,
  freshnessReceipt,
  freshnessVerdict,
  makeAdmission,
  releaseQuarantined,
  sourcesOf,
  validateBundle,
} from "../../keep/admit/index.ts";
import { makeSealer, readRecord } from "../../store/index.ts";
import {
  artifactsOf,
  type BookIndex,
  type IndexedArtifact,
  type IndexedRecord,
  type OpenBook,
  requireTrusted,
  resolveArtifact,
} from "../open/index.ts";
import { chooseArtifacts, type RolloutFilter } from "./admitted-rollouts.ts";
import { type FittingTarget, FittingTargets } from "./fitting-targets.ts";
import { readRevision } from "./read-revision.ts";
import { taskFailures } from "./task-failures.ts";
import {
  type AdmissionResult,
  afterAll,
  standingVerdicts,
  VerdictWriter,
  validatorKey,
} from "./verdict-writer.ts";

interface FreshnessTarget {
  /** Policy revision, by id or digest. */
  readonly target: string;
  /** Freshness budgets (default: drift of up to 3 accepted, up to 5 quarantined). */
  readonly budgets?: FreshnessBudgets | undefined;
}

interface FreshnessJudging extends RolloutFilter, FreshnessTarget {
  readonly family?: string | undefined;
  /** Judges only rollouts in which this revision chose, by id or digest. */
  readonly chosenBy?: string | undefined;
}

/** Checks freshness against a policy revision: the drift of their policy from it, and the ages of policy and rollout.
 *  The submission time of a rollout is that of its first receipt, else now. */
export async function admitRollouts(book: OpenBook, request: FreshnessJudging): Promise<AdmissionResult[]> {
  return (await judgeFreshness(book, request)).results;
}

/** As `admitRollouts`, with the targets that accept rollouts beyond the target. */
export async function judgeFreshness(
  book: OpenBook,
  request: FreshnessJudging,
): Promise<{ results: AdmissionResult[]; fitting: FittingTarget[] }> {
  const { store, clock } = book;
  const index = await book.index();
  const artifacts = chooseOrAll(index, request);
  const { record: target } = await readRevision(book, request.target, request.family);
  const revision = await revisionsOf(book, target.family);
  const submitted = firstReceipts(index);
  const nowMs = clock.nowMs();
  const atMs = afterAll(index, nowMs);
  const budgets = request.budgets ?? FRESHNESS_PROFILES.default;
  const writer = new VerdictWriter(book, index);
  const fitting = new FittingTargets({ target, revision, budgets });
  const chooser =
    request.chosenBy === undefined
      ? undefined
      : (await readRevision(book, request.chosenBy, target.family)).record;
  const results: AdmissionResult[] = [];
  for (const { content, envelopes } of artifacts) {
    const record = await readRecord(store, RolloutContent, content.digest);
    if (
      chooser !== undefined &&
      !sourcesOf(record, target.family).some(({ digest }) => digest === chooser.digest)
    )
      continue;
    const asked = {
      content: record,
      envelope: await readRecord(store, RolloutEnvelope, envelopes[0]!),
      ...{ target, revision, budgets, submittedAtMs: submitted.get(content.digest) ?? nowMs },
    };
    const freshness = checkFreshness(asked);
    const subject = content.digest;
    const verdict = freshnessVerdict(freshness, { subject, family: target.family, atMs });
    const beside = [freshnessReceipt(freshness, { subject, atMs: nowMs })];
    const { message } = freshness;
    const why = explainFreshness(freshness, asked);
    const { disposition } = verdict.record;
    if (disposition !== "unobserved") fitting.see(record, { isAccepted: disposition === "accepted" });
    results.push(await writer.add(verdict, { rolloutId: content.id!, message, why, beside }));
  }
  await writer.commit();
  return { results, fitting: fitting.found() };
}

/** Checks proofs, times, token counts and copies. Without names, it checks the rollouts that this validator has not
 *  checked yet. A rollout must not repeat one that the validator accepted earlier. */
export async function validateRollouts(
  book: OpenBook,
  request: Pick<RolloutFilter, "artifacts"> & {
    /** Name under which the validator signs verdicts (default: rollbook). */
    readonly validator?: string | undefined;
    /** False: rollouts need no proof of execution, and those rejected only for a missing proof are checked again. */
    readonly requireProof?: boolean | undefined;
  } = {},
): Promise<AdmissionResult[]> {
  const { store, clock } = book;
  const validator = parseId(request.validator ?? "rollbook", "--validator");
  const index = await book.index();
  const chosen = chooseOrAll(index, request);
  const requireProof = request.requireProof ?? true;
  const artifacts = isNamed(request)
    ? chosen
    : await unchecked(book, index, { artifacts: chosen, validator, requireProof });
  const read = async ({ content, envelopes }: IndexedArtifact) => {
    const [digest, envelope] = [content.digest, envelopes[0]!];
    return {
      content: { digest, record: await readRecord(store, RolloutContent, digest) },
      envelope: { digest: envelope, record: await readRecord(store, RolloutEnvelope, envelope) },
    } as Parameters<typeof validateBundle>[0][number];
  };
  const verdicts = await validateBundle(await Promise.all(artifacts.map(read)), {
    ...{ validator, nowMs: afterAll(index, clock.nowMs()), sampleBps: 0, nonce: "", requireProof },
    has: (digest) => store.has(digest),
    calls: ({ calls }) => Promise.all(calls.map((each) => readRecord(store, Call, each))),
    earlier: await Promise.all(acceptedBy(index, { except: artifacts, validator }).map(read)),
  });
  const names = new Map(artifacts.map(({ content }) => [content.digest, content.id!]));
  const writer = new VerdictWriter(book, index);
  const results: AdmissionResult[] = [];
  for (const verdict of verdicts) {
    const { subject, codes, disposition, weightBps } = verdict.record;
    const message = codes.length === 0 ? disposition : `${disposition}: ${codes.join(", ")}`;
    const why =
      disposition === "normalized"
        ? `a copy of an earlier rollout; counts with weight ${weightBps / 100} %`
        : codes.join(", ");
    results.push(await writer.add(verdict, { rolloutId: names.get(subject)!, message, why }));
  }
  await writer.commit();
  return results.sort((a, b) => compareUtf8(a.rolloutId, b.rolloutId));
}

/** Releases a quarantined rollout into batches, by name and with a reason. Overrides only the current verdicts, no
 *  later ones. */
export async function releaseRollout(
  book: OpenBook,
  name: string,
  { reason, by: author = "owner" }: { reason: string; by?: string },
): Promise<{ rolloutId: string; releases: readonly Sealed<QuarantineRelease>[] }> {
  const { store, clock, signer } = book;
  const by = parseId(author, "--by");
  const index = await book.index();
  const { content } = resolveArtifact(index, name, { wholeId: true });
  const released = new Set(index.ofKind(QuarantineRelease.kind).map(({ fields }) => fields.verdict));
  const releases: Sealed<QuarantineRelease>[] = [];
  for (const { digest, fields } of standingVerdicts(index).get(content.digest)?.values() ?? [])
    if (fields.disposition === "quarantined" && !released.has(digest)) {
      const verdict = { digest, record: await readRecord(store, Verdict, digest) } as Sealed<Verdict>;
      releases.push(releaseQuarantined(verdict, { by, reason, atMs: clock.nowMs() }));
    }
  if (releases.length === 0) throw await nothingToRelease(book, content);
  const sealer = makeSealer(store, signer);
  await Promise.all(releases.map((release) => sealer.add({ envelope: release, blobs: [release] })));
  return { rolloutId: content.id!, releases };
}

/** No release cancels the quarantine of a task, so the message says what does. */
async function nothingToRelease(book: OpenBook, { id, digest }: IndexedRecord): Promise<RollbookError> {
  const failures = await taskFailures(book, await readRecord(book.store, RolloutContent, digest));
  const why =
    failures.length === 0
      ? `no verdict quarantines ${id} now: there is nothing to release. \`rollbook artifact show ${id}\` lists its verdicts.`
      : `${id} is left out as task-quarantined: its task made ${failures.join(", ")} fail. No release changes that. Correct the task, and record it again.`;
  return new RollbookError("not-quarantined", { artifact: id, content: digest }, why);
}

/** Admission check for submissions to a gateway or a launch: freshness against `target`. */
export async function admissionFor(
  book: OpenBook,
  { target: name, budgets }: FreshnessTarget,
): Promise<ReturnType<typeof makeAdmission>> {
  const { record: target } = await readRevision(book, name);
  return makeAdmission({
    target: () => target,
    revision: await revisionsOf(book, target.family),
    budgets: budgets ?? FRESHNESS_PROFILES.default,
  });
}

/** Records of a family's revisions. A record that was only logged does not state when the revision was produced;
 *  another record may. */
async function revisionsOf(book: OpenBook, family: Id): Promise<FreshnessRequest["revision"]> {
  const known = new Map<string, PolicyRevision>();
  const index = await book.index();
  const ofFamily = index.ofKind(PolicyRevision.kind).filter((record) => record.family === family);
  await requireTrusted(book, index, ofFamily);
  for (const { digest } of ofFamily) {
    const revision = await readRecord(book.store, PolicyRevision, digest);
    if ((known.get(revision.id)?.producedAtMs ?? 0) === 0) known.set(revision.id, revision);
  }
  return ({ id }) => known.get(id);
}

/** Without names, all artifacts of the book are chosen. */
function chooseOrAll(index: BookIndex, filter: RolloutFilter): IndexedArtifact[] {
  return chooseArtifacts(index, isNamed(filter) ? filter : { ...filter, artifacts: undefined });
}

function isNamed({ artifacts = [] }: RolloutFilter): boolean {
  return artifacts.length > 0;
}

/** Artifacts without a verdict of the validator. Without `requireProof`, also those that it rejected only for a missing
 *  proof. */
async function unchecked(
  { store }: OpenBook,
  index: BookIndex,
  request: { artifacts: readonly IndexedArtifact[]; validator: Id; requireProof: boolean },
): Promise<IndexedArtifact[]> {
  const { artifacts, validator, requireProof } = request;
  const standing = standingVerdicts(index);
  const found: IndexedArtifact[] = [];
  for (const artifact of artifacts) {
    const known = standing.get(artifact.content.digest)?.get(validatorKey({ validator }));
    const codes =
      known === undefined || requireProof ? [] : (await readRecord(store, Verdict, known.digest)).codes;
    if (known === undefined || codes.join() === "execution-proof-missing") found.push(artifact);
  }
  return found;
}

/** Other artifacts that this validator accepted. */
function acceptedBy(
  index: BookIndex,
  { except, validator }: { except: readonly IndexedArtifact[]; validator: Id },
): IndexedArtifact[] {
  const chosen = new Set(except.map(({ content }) => content.digest));
  const artifacts = new Map(artifactsOf(index).map((each) => [each.content.digest, each]));
  return [...standingVerdicts(index)].flatMap(([subject, verdicts]) => {
    const disposition = verdicts.get(validatorKey({ validator }))?.fields.disposition;
    const isAccepted = disposition === "accepted" || disposition === "normalized";
    return isAccepted && !chosen.has(subject) ? (artifacts.get(subject) ?? []) : [];
  });
}

function firstReceipts(index: BookIndex): Map<Digest, number> {
  const first = new Map<Digest, number>();
  for (const { fields } of index.ofKind(Receipt.kind)) {
    const [subject, atMs] = [fields.subject as Digest, fields.atMs as number];
    first.set(subject, Math.min(atMs, first.get(subject) ?? atMs));
  }
  return first;
}
