/** First pass of assembly: reads every artifact once, decides what is selected and why the rest is not.
 *  Out: light rows (about half a kilobyte each); the numbers stay in the store until the second pass. */
import type { Digest } from "../../base/digest.ts";
import { compareUtf8 } from "../../base/ids.ts";
import { Feedback } from "../../contract/feedback.ts";
import type { ExclusionReason } from "../../contract/ledger.ts";
import type { Manifest } from "../../contract/manifest.ts";
import { PolicyRevision, type RevisionKey, standsBefore } from "../../contract/policy-revision.ts";
import type { Proof } from "../../contract/proof.ts";
import { Receipt } from "../../contract/receipt.ts";
import type { Sealed } from "../../contract/record.ts";
import { refuse } from "../../contract/refusal.ts";
import { checkProofs, type RolloutContent, RolloutEnvelope } from "../../contract/rollout.ts";
import { type ReadBlob, readColumn } from "../../contract/rollout-exchange.ts";
import { type LogprobKind, type Stream, sampleCount } from "../../contract/stream.ts";
import type { BatchOptions, Selection } from "../../contract/trainer-batch.ts";
import { Release, Verdict } from "../../contract/verdict.ts";
import { type Gates, makeGates, taskKey } from "./gates.ts";
import { type LateReward, landingIndex, lateRewards } from "./labels.ts";
import { contentReader, readRecord, readSealed } from "./read-sources.ts";
import { LedgerTally } from "./ledger-tally.ts";

/** A stream that will become a row of the batch. */
export interface SurveyRow {
  content: Digest;
  stream: number;
  rolloutId: RolloutContent["rolloutId"];
  group: RolloutContent["group"];
  weightBps: number;
  length: number;
  samples: number;
  reward: number;
  late: readonly LateReward[];
  revisions: readonly { start: number; end: number; revision: RevisionKey }[];
}

export interface Survey {
  rows: SurveyRow[];
  proofs: Map<Digest, Proof>;
  /** The source revisions behind the rows, unique, sorted by the UTF-8 bytes of their ids. */
  sources: Sealed<PolicyRevision>[];
  logprobKind: LogprobKind | undefined;
}

export interface SurveyRequest {
  read: ReadBlob;
  manifest: Manifest;
  target: Sealed<PolicyRevision>;
  /** Without a family everything at this level is selected, and a mix of families is refused. */
  selection: Pick<Selection, "level" | "logprobKind"> & { family?: Selection["family"] | undefined };
  options: BatchOptions;
}

/** A task that failed once is suspect in every rollout of it, also in those seen before the failure: the rare
 *  manifest that holds one is gone through again. */
export async function surveyManifest(
  request: SurveyRequest,
): Promise<{ survey: Survey; ledger: LedgerTally }> {
  const inputs = await readInputs(request);
  const first = await surveyOnce(request, inputs, new Set());
  return first.failedTasks.size === 0 ? first : surveyOnce(request, inputs, first.failedTasks);
}

interface Inputs {
  revisions: Map<string, Sealed<PolicyRevision>>;
  verdicts: Sealed<Verdict>[];
  releases: Release[];
  receipts: Sealed<Receipt>[];
  family: string;
  late: Map<Digest, LateReward[]>;
}

async function readInputs({ read, manifest, target, options }: SurveyRequest): Promise<Inputs> {
  const feedback = await Promise.all(manifest.feedback.map((each) => readSealed(read, Feedback, each)));
  return {
    revisions: await readRevisions(read, manifest, target),
    verdicts: await Promise.all(manifest.verdicts.map((each) => readSealed(read, Verdict, each))),
    releases: await Promise.all(manifest.releases.map((each) => readRecord(read, Release, each))),
    receipts: await Promise.all((manifest.receipts ?? []).map((each) => readSealed(read, Receipt, each))),
    family: target.record.family,
    late: lateRewards(feedback, options.feedback),
  };
}

async function surveyOnce(request: SurveyRequest, inputs: Inputs, suspects: ReadonlySet<string>) {
  const { read, manifest, options, selection } = request;
  const gates = makeGates({ ...inputs, requireVerdict: options.requireVerdict, failedTasks: suspects });
  const readContent = contentReader(read);
  const ledger = new LedgerTally();
  const failedTasks = new Set<string>();
  const survey: Survey = { rows: [], proofs: new Map(), sources: [], logprobKind: selection.logprobKind };
  const used = new Map<string, Sealed<PolicyRevision>>();

  for (const { content: digest, envelope } of manifest.artifacts) {
    const content = await readContent(digest);
    ledger.consider(content);
    if (content.ending.kind === "failed" && content.ending.owner === "task")
      failedTasks.add(taskKey(content));
    const closed = closedBy(gates, digest, content);
    if (typeof closed === "string") {
      ledger.excludeArtifact(digest, content, closed);
      continue;
    }
    const { weightBps } = closed;
    const late = inputs.late.get(digest) ?? [];
    const chosen = await chooseStreams({ request, digest, content, weightBps, late, survey, ledger });
    if (chosen.length === 0) continue;
    survey.rows.push(...chosen);
    for (const row of chosen)
      for (const { revision } of row.revisions)
        used.set(revision.id, findRevision(inputs.revisions, revision, digest));
    await keepProofs(read, digest, envelope, content, survey.proofs);
  }
  survey.sources = [...used.values()].sort((a, b) => compareUtf8(a.record.id, b.record.id));
  return { survey, ledger, failedTasks };
}

function closedBy(
  gates: Gates,
  digest: Digest,
  content: RolloutContent,
): ExclusionReason | { weightBps: number } {
  const reason = gates.receiptGate(digest, content) ?? gates.endingGate(content);
  if (reason !== undefined) return reason;
  const gate = gates.verdictGate(digest);
  return gate.open ? gate : gate.reason;
}

async function chooseStreams(at: {
  request: SurveyRequest;
  digest: Digest;
  content: RolloutContent;
  weightBps: number;
  late: readonly LateReward[];
  survey: Survey;
  ledger: LedgerTally;
}): Promise<SurveyRow[]> {
  const { request, digest, content, survey, ledger } = at;
  const rows: SurveyRow[] = [];
  const left: { stream: Stream; index: number; reason: ExclusionReason }[] = [];
  for (const [index, stream] of content.streams.entries()) {
    const reason = excludedBy(request, survey, digest, content, stream);
    const reward = reason === undefined ? await rewardOf(request.read, stream, at.late) : undefined;
    if (reason !== undefined || reward === undefined) {
      left.push({ stream, index, reason: reason ?? "unlabelled" });
      continue;
    }
    rows.push({
      content: digest,
      stream: index,
      rolloutId: content.rolloutId,
      group: content.group,
      weightBps: at.weightBps,
      length: stream.level === "token" ? stream.length : stream.steps.length,
      samples: sampleCount(stream),
      reward,
      late: at.late,
      revisions: revisionParts(stream),
    });
  }
  left.forEach((each, i) => {
    ledger.excludeStream(digest, { ...each, last: rows.length === 0 && i === left.length - 1 });
  });
  return rows;
}

function excludedBy(
  request: SurveyRequest,
  survey: Survey,
  digest: Digest,
  content: RolloutContent,
  stream: Stream,
): ExclusionReason | undefined {
  const { selection, options, target } = request;
  if (stream.level !== selection.level) return "other-level";
  if (stream.family !== (selection.family ?? target.record.family)) {
    if (selection.family !== undefined) return "other-family";
    throw refuse(
      "policy-family-mismatch",
      { artifact: digest, rollout: content.rolloutId, expected: target.record.family, actual: stream.family },
      `rollout ${content.rolloutId} (${digest}) has a ${stream.level} stream of family ${stream.family}, the batch targets ${target.record.family}. Name the family to select; the rest then goes to the ledger.`,
    );
  }
  const grouped = options.advantage === "mean-std" || options.advantage === "leave-one-out";
  if (grouped && content.group === undefined) return "no-group";
  if (
    options.maxLength !== undefined &&
    (stream.level === "token" ? stream.length : stream.steps.length) > options.maxLength
  )
    return "too-long";
  if (stream.level === "step")
    return stream.steps.some((each) => each.candidates[0]!.probability === null)
      ? "no-propensity"
      : undefined;
  if (selection.logprobKind !== undefined)
    return stream.logprobKind === selection.logprobKind ? undefined : "other-logprob-kind";
  survey.logprobKind ??= stream.logprobKind;
  if (survey.logprobKind !== stream.logprobKind) {
    throw refuse(
      "wrong-logprob-kind",
      { artifact: digest, expected: survey.logprobKind, actual: stream.logprobKind },
      `rollout ${content.rolloutId} has ${stream.logprobKind} logprobs, others have ${survey.logprobKind}. Select one kind; the rest then goes to the ledger.`,
    );
  }
  return undefined;
}

/** The reward of a stream, or undefined where it has none: unlabelled is not 0. */
async function rewardOf(
  read: ReadBlob,
  stream: Stream,
  late: readonly LateReward[],
): Promise<number | undefined> {
  if (stream.level === "token" && stream.columns.rewards !== undefined) {
    const rewards = await readColumn(read, stream.columns.rewards, "rewards");
    return rewards.reduce((sum, reward) => sum + reward, 0);
  }
  if (stream.level === "step" && stream.steps.every((each) => each.reward !== null)) {
    return stream.steps.reduce((sum, each) => sum + each.reward!, 0);
  }
  if (late.length === 0) return undefined;
  const mask = stream.level === "token" ? await readColumn(read, stream.columns.mask, "mask") : undefined;
  const landing = late.filter((each) => landingIndex(stream, mask, each) >= 0);
  return landing.length === 0 ? undefined : landing.reduce((sum, each) => sum + each.value, 0);
}

function revisionParts(stream: Stream): SurveyRow["revisions"] {
  if (stream.level === "token") return stream.segments;
  return stream.steps.map((each, i) => ({ start: i, end: i + 1, revision: each.revision }));
}

async function readRevisions(
  read: ReadBlob,
  manifest: Manifest,
  target: Sealed<PolicyRevision>,
): Promise<Map<string, Sealed<PolicyRevision>>> {
  const revisions = new Map<string, Sealed<PolicyRevision>>();
  const all = await Promise.all(manifest.revisions.map((each) => readSealed(read, PolicyRevision, each)));
  for (const revision of [target, ...all]) {
    if (revision.record.family !== target.record.family) continue;
    const known = revisions.get(revision.record.id);
    if (known !== undefined && known.record.digest !== revision.record.digest)
      throw conflict(revision.record.id, known.record.digest, revision.record.digest);
    if (known === undefined || standsBefore(rankOf(revision), rankOf(known)))
      revisions.set(revision.record.id, revision);
  }
  return revisions;
}

function rankOf({ digest, record: { producedAtMs } }: Sealed<PolicyRevision>) {
  return { digest, producedAtMs };
}

function findRevision(
  revisions: Map<string, Sealed<PolicyRevision>>,
  key: RevisionKey,
  artifact: Digest,
): Sealed<PolicyRevision> {
  const known = revisions.get(key.id);
  if (known === undefined) {
    throw refuse(
      "unknown-revision",
      { revision: key.id, artifact },
      `rollout ${artifact} was sampled by revision ${key.id}, which has no record in the manifest. Import the revision first, or leave the rollout out (\`rollbook batch assemble --exclude\`).`,
    );
  }
  if (known.record.digest !== key.digest) throw conflict(key.id, known.record.digest, key.digest);
  return known;
}

function conflict(revision: string, known: Digest, found: Digest): Error {
  return refuse(
    "revision-conflict",
    { revision, digests: [known, found] },
    `revision ${revision} appears with two digests, ${known} and ${found}. New weights need a new revision id.`,
  );
}

/** Proofs of batched rollouts, checked and unique by digest. */
async function keepProofs(
  read: ReadBlob,
  digest: Digest,
  envelope: Digest,
  content: RolloutContent,
  proofs: Map<Digest, Proof>,
): Promise<void> {
  const record = await readRecord(read, RolloutEnvelope, envelope);
  if (record.content !== digest) {
    throw refuse(
      "digest-mismatch",
      { envelope, expected: digest, actual: record.content },
      `envelope ${envelope} belongs to ${record.content}, the manifest pairs it with ${digest}.`,
    );
  }
  checkProofs(record, content);
  for (const each of record.proofs) if (!proofs.has(each.digest)) proofs.set(each.digest, each);
}
