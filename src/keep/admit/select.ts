/** The one way from stored rollouts to anything that learns or judges: decides what is admitted, and why the rest is not.
 *  In: a sealed manifest, a family and a level, what the consumer needs. Out: light rows (about half a kilobyte each) and
 *  the ledger; the numbers stay in the store. Pure: same input, same rows. */
import type { Digest } from "../../base/digest.ts";
import { compareUtf8, type Id } from "../../base/ids.ts";
import { Feedback } from "../../contract/feedback.ts";
import type { DriftBudgets, ExclusionReason } from "../../contract/ledger.ts";
import type { Manifest } from "../../contract/manifest.ts";
import {
  nameRevision,
  PolicyRevision,
  type RevisionKey,
  standsBefore,
} from "../../contract/policy-revision.ts";
import type { Proof } from "../../contract/proof.ts";
import { Receipt } from "../../contract/receipt.ts";
import type { Sealed } from "../../contract/record.ts";
import { refuse } from "../../contract/refusal.ts";
import { checkProofs, type RolloutContent, RolloutEnvelope } from "../../contract/rollout.ts";
import { type ReadBlob, readColumn } from "../../contract/rollout-exchange.ts";
import {
  type LogprobKind,
  type StepStream,
  type Stream,
  sampleCount,
  type TokenStream,
} from "../../contract/stream.ts";
import type { BatchOptions, Selection } from "../../contract/trainer-batch.ts";
import { Release, Verdict } from "../../contract/verdict.ts";
import { judgeDrift } from "./freshness.ts";
import { type Gates, makeGates, taskKey } from "./gates.ts";
import { type Labels, type LateReward, labelSteps, labelTokens, lateRewards } from "./labels.ts";
import { LedgerTally } from "./ledger-tally.ts";
import { contentReader, readRecord, readSealed } from "./read-sources.ts";
import { partOf, unitOfStream } from "./split.ts";

/** A stream that may teach or judge. */
export interface AdmittedStream {
  content: Digest;
  envelope: Digest;
  stream: number;
  rolloutId: RolloutContent["rolloutId"];
  group: RolloutContent["group"];
  task: RolloutContent["task"];
  weightBps: number;
  length: number;
  samples: number;
  /** Null: unlabelled, where the consumer keeps those. */
  reward: number | null;
  /** Of a labelled step stream: one per step. */
  rewards?: readonly number[] | undefined;
  late: readonly LateReward[];
  revisions: readonly { start: number; end: number; revision: RevisionKey }[];
}

export interface Admitted {
  rows: AdmittedStream[];
  proofs: Map<Digest, Proof>;
  /** The source revisions behind the rows, unique, sorted by the UTF-8 bytes of their ids. */
  sources: Sealed<PolicyRevision>[];
  logprobKind: LogprobKind | undefined;
  /** Whether a row has a step that logs the probability of its choice alone. */
  choiceOnly: boolean;
  ledger: LedgerTally;
}

/** Freshness is the consumer's choice; what it needs of a stream too. Every other gate is the same for all. */
export interface AdmitOptions
  extends Pick<BatchOptions, "feedback" | "maxLength" | "requireVerdict" | "split"> {
  /** Absent: no limit. It judges what no freshness verdict has judged. */
  freshness?: DriftBudgets | undefined;
  /** Only rollouts of a group: advantages are measured against it. */
  grouped?: boolean;
  /** What carries missing rewards as missing may keep them; what learns or estimates leaves them out. */
  unlabelled?: "exclude" | "keep";
  /** Revisions that sampled and have no record: refused, or taken by their names alone, as a log knows them. */
  unrecorded?: "refuse" | "name";
  /** What step streams must have logged: the whole distribution, the probability of the choice, or nothing. */
  propensity?: "distribution" | "choice" | "any" | undefined;
}

export interface AdmitRequest {
  read: ReadBlob;
  manifest: Manifest;
  /** Needed for a budget of freshness, or where the selection names no family. */
  target?: Sealed<PolicyRevision> | undefined;
  /** Without a family everything at this level is selected, and a mix of families is refused. */
  selection: Pick<Selection, "level" | "logprobKind"> & { family?: Selection["family"] | undefined };
  options: AdmitOptions;
}

/** A task that failed once is suspect in every rollout of it, also in those seen before the failure: the rare
 *  manifest that holds one is gone through again. */
export async function selectAdmitted(request: AdmitRequest): Promise<Admitted> {
  const inputs = await readInputs(request);
  const first = await selectOnce(request, inputs, new Set());
  return first.failedTasks.size === 0 ? first : selectOnce(request, inputs, first.failedTasks);
}

interface Inputs {
  revisions: Map<string, Sealed<PolicyRevision>>;
  verdicts: Sealed<Verdict>[];
  releases: Release[];
  receipts: Sealed<Receipt>[];
  family: Id;
  late: Map<Digest, LateReward[]>;
}

async function readInputs({ read, manifest, target, selection, options }: AdmitRequest): Promise<Inputs> {
  const family = selection.family ?? target?.record.family;
  if (family === undefined || (target === undefined && options.freshness !== undefined))
    throw refuse(
      "bad-record",
      { field: "target" },
      "a selection without a family, or with a budget of freshness, needs a target revision. Name one.",
    );
  const feedback = await Promise.all(manifest.feedback.map((each) => readSealed(read, Feedback, each)));
  return {
    revisions: await readRevisions(read, manifest, { family, target }),
    verdicts: await Promise.all(manifest.verdicts.map((each) => readSealed(read, Verdict, each))),
    releases: await Promise.all(manifest.releases.map((each) => readRecord(read, Release, each))),
    receipts: await Promise.all((manifest.receipts ?? []).map((each) => readSealed(read, Receipt, each))),
    family,
    late: lateRewards(feedback, options.feedback),
  };
}

async function selectOnce(request: AdmitRequest, inputs: Inputs, suspects: ReadonlySet<string>) {
  const { read, manifest, options, selection } = request;
  const gates = makeGates({ ...inputs, requireVerdict: options.requireVerdict, failedTasks: suspects });
  const readContent = contentReader(read);
  const ledger = new LedgerTally();
  const failedTasks = new Set<string>();
  const admitted: Admitted = {
    rows: [],
    proofs: new Map(),
    sources: [],
    logprobKind: selection.logprobKind,
    choiceOnly: false,
    ledger,
  };
  const used = new Map<string, Sealed<PolicyRevision>>();

  for (const { content: digest, envelope } of manifest.artifacts) {
    const content = await readContent(digest);
    ledger.consider(content);
    if (content.ending.kind === "failed" && content.ending.owner === "task")
      failedTasks.add(taskKey(content));
    const gate = gateOf({ request, inputs, gates, digest, content });
    if (!gate.open) {
      ledger.excludeArtifact(digest, content, gate);
      continue;
    }
    const { weightBps } = gate;
    const late = inputs.late.get(digest) ?? [];
    const at = { request, inputs, digest, envelope, content, weightBps, late, admitted };
    const chosen = await chooseStreams(at);
    if (chosen.length === 0) continue;
    admitted.rows.push(...chosen);
    for (const row of chosen)
      for (const { revision } of row.revisions)
        used.set(revision.id, findRevision({ request, inputs, artifact: digest }, revision));
    await keepProofs(read, { digest, envelope, content, proofs: admitted.proofs });
  }
  admitted.sources = [...used.values()].sort((a, b) => compareUtf8(a.record.id, b.record.id));
  return { ...admitted, failedTasks };
}

type ArtifactGate =
  | { open: true; weightBps: number }
  | { open: false; reason: ExclusionReason; detail?: string; budget?: DriftBudgets };

function gateOf(at: {
  request: AdmitRequest;
  inputs: Inputs;
  gates: Gates;
  digest: Digest;
  content: RolloutContent;
}): ArtifactGate {
  const { request, inputs, gates, digest, content } = at;
  const reason = gates.receiptGate(digest, content) ?? gates.endingGate(content);
  if (reason !== undefined) return { open: false, reason };
  const gate = gates.verdictGate(digest);
  const { freshness: budgets } = request.options;
  if (!gate.open || budgets === undefined || gates.hasFreshness(digest)) return gate;
  const { outcome, message } = judgeDrift({
    content,
    target: request.target!.record,
    revision: (key) => inputs.revisions.get(key.id)?.record,
    budgets,
  });
  if (outcome !== "discarded" && outcome !== "quarantined") return gate;
  const harsh = outcome === "discarded" ? "stale" : "quarantined";
  return { open: false, reason: harsh, detail: message, budget: budgets };
}

async function chooseStreams(at: {
  request: AdmitRequest;
  inputs: Inputs;
  digest: Digest;
  envelope: Digest;
  content: RolloutContent;
  weightBps: number;
  late: readonly LateReward[];
  admitted: Admitted;
}): Promise<AdmittedStream[]> {
  const { request, digest, content, admitted } = at;
  const rows: AdmittedStream[] = [];
  const left: { stream: Stream; index: number; reason: ExclusionReason }[] = [];
  const keeps = request.options.unlabelled === "keep";
  for (const [index, stream] of content.streams.entries()) {
    const reason = excludedBy(at, stream, index);
    const labels = reason === undefined ? await labelsOf(request.read, stream, at.late) : undefined;
    if (reason !== undefined || (labels === undefined && !keeps)) {
      left.push({ stream, index, reason: reason ?? "unlabelled" });
      continue;
    }
    rows.push({
      content: digest,
      envelope: at.envelope,
      stream: index,
      rolloutId: content.rolloutId,
      group: content.group,
      task: content.task,
      weightBps: at.weightBps,
      length: lengthOf(stream),
      samples: sampleCount(stream),
      reward: labels?.total ?? null,
      ...(stream.level === "step" ? { rewards: labels?.rewards as readonly number[] | undefined } : {}),
      late: at.late,
      revisions: revisionParts(stream),
    });
  }
  left.forEach((each, i) => {
    admitted.ledger.excludeStream(digest, { ...each, last: rows.length === 0 && i === left.length - 1 });
  });
  return rows;
}

function excludedBy(
  at: { request: AdmitRequest; inputs: Inputs; digest: Digest; content: RolloutContent; admitted: Admitted },
  stream: Stream,
  index: number,
): ExclusionReason | undefined {
  const { digest, content, inputs } = at;
  const { selection, options } = at.request;
  if (stream.level !== selection.level) return "other-level";
  if (stream.family !== inputs.family) {
    if (selection.family !== undefined) return "other-family";
    throw refuse(
      "policy-family-mismatch",
      { artifact: digest, rollout: content.rolloutId, expected: inputs.family, actual: stream.family },
      `rollout ${content.rolloutId} (${digest}) has a ${stream.level} stream of family ${stream.family}, the batch targets ${inputs.family}. Name the family to select; the rest then goes to the ledger.`,
    );
  }
  if (options.grouped === true && content.group === undefined) return "no-group";
  if (options.maxLength !== undefined && lengthOf(stream) > options.maxLength) return "too-long";
  const { split } = options;
  if (split !== undefined && partOf(unitOfStream(content, index, split.unit), split) !== split.part)
    return "held-out";
  return stream.level === "step" ? propensityExcludes(at, stream) : logprobsExclude(at, stream);
}

/** Importance ratios divide by it: of the whole distribution, or of the choice alone. */
function propensityExcludes(
  { request, admitted }: { request: AdmitRequest; admitted: Admitted },
  { steps }: StepStream,
): ExclusionReason | undefined {
  const { propensity = "distribution" } = request.options;
  if (propensity === "any" || steps.every((step) => step.candidates[step.chosen]!.probability !== null))
    return undefined;
  const logged = steps.every(
    (step) => step.candidates[step.chosen]!.probability !== null || step.propensity !== undefined,
  );
  if (propensity === "distribution" || !logged) return "no-propensity";
  admitted.choiceOnly = true;
  return undefined;
}

/** One kind of log-probabilities for all: the one asked for, else that of the first stream. */
function logprobsExclude(
  at: { request: AdmitRequest; digest: Digest; content: RolloutContent; admitted: Admitted },
  stream: TokenStream,
): ExclusionReason | undefined {
  const wanted = at.request.selection.logprobKind;
  if (wanted !== undefined) return stream.logprobKind === wanted ? undefined : "other-logprob-kind";
  at.admitted.logprobKind ??= stream.logprobKind;
  if (at.admitted.logprobKind === stream.logprobKind) return undefined;
  throw refuse(
    "wrong-logprob-kind",
    { artifact: at.digest, expected: at.admitted.logprobKind, actual: stream.logprobKind },
    `rollout ${at.content.rolloutId} has ${stream.logprobKind} logprobs, others have ${at.admitted.logprobKind}. Select one kind; the rest then goes to the ledger.`,
  );
}

/** Undefined where there are none: unlabelled is not 0. */
async function labelsOf(
  read: ReadBlob,
  stream: Stream,
  late: readonly LateReward[],
): Promise<Labels | undefined> {
  if (stream.level === "step") return labelSteps(stream, late);
  const { rewards, mask } = stream.columns;
  const columns =
    rewards !== undefined
      ? { rewards: await readColumn(read, rewards, "rewards") }
      : late.length === 0
        ? {}
        : { mask: await readColumn(read, mask, "mask") };
  return labelTokens(stream, columns, late);
}

function lengthOf(stream: Stream): number {
  return stream.level === "token" ? stream.length : stream.steps.length;
}

function revisionParts(stream: Stream): AdmittedStream["revisions"] {
  if (stream.level === "token") return stream.segments;
  return stream.steps.map((each, i) => ({ start: i, end: i + 1, revision: each.revision }));
}

async function readRevisions(
  read: ReadBlob,
  manifest: Manifest,
  { family, target }: { family: Id; target: Sealed<PolicyRevision> | undefined },
): Promise<Map<string, Sealed<PolicyRevision>>> {
  const revisions = new Map<string, Sealed<PolicyRevision>>();
  const all = await Promise.all(manifest.revisions.map((each) => readSealed(read, PolicyRevision, each)));
  for (const revision of target === undefined ? all : [target, ...all]) {
    if (revision.record.family !== family) continue;
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
  { request, inputs, artifact }: { request: AdmitRequest; inputs: Inputs; artifact: Digest },
  key: RevisionKey,
): Sealed<PolicyRevision> {
  const known = inputs.revisions.get(key.id);
  if (known !== undefined) {
    if (known.record.digest !== key.digest) throw conflict(key.id, known.record.digest, key.digest);
    return known;
  }
  if (request.options.unrecorded !== "name")
    throw refuse(
      "unknown-revision",
      { revision: key.id, artifact },
      `rollout ${artifact} was sampled by revision ${key.id}, which has no record in the manifest. Import the revision first, or leave the rollout out (\`rollbook batch assemble --exclude\`).`,
    );
  const named = nameRevision(inputs.family, key);
  inputs.revisions.set(key.id, named);
  return named;
}

function conflict(revision: string, known: Digest, found: Digest): Error {
  return refuse(
    "revision-conflict",
    { revision, digests: [known, found] },
    `revision ${revision} appears with two digests, ${known} and ${found}. New weights need a new revision id.`,
  );
}

/** Proofs of admitted rollouts, checked and unique by digest. */
async function keepProofs(
  read: ReadBlob,
  at: { digest: Digest; envelope: Digest; content: RolloutContent; proofs: Map<Digest, Proof> },
): Promise<void> {
  const { digest, envelope, content, proofs } = at;
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
