/** The only way from stored rollouts to a learner or a gate: decides which rows are admitted, and records why the
 *  others are not.
 *  In: a sealed manifest, a family and a level, the requirements of the consumer. Out: light rows (about half a
 *  kilobyte each) and the ledger; the numbers stay in the store. Pure: same input, same rows. */
import { compareUtf8, type Digest } from "../../base/index.ts";
import {
  checkProofs,
  type DriftBudgets,
  type ExclusionReason,
  type PolicyRevision,
  type Proof,
  type RolloutContent,
  RolloutEnvelope,
  refuse,
  type Sealed,
  type Stream,
  sampleCount,
} from "../../contract/index.ts";
import type { AdmitRequest, Admitted, AdmittedStream } from "./admitted.ts";
import { measureDrift } from "./freshness.ts";
import { type Gates, makeGates, taskKey } from "./gates.ts";
import { LedgerTally } from "./ledger-tally.ts";
import { type ManifestInputs, readInputs } from "./manifest-inputs.ts";
import { type SourceReaders, sourceReaders } from "./read-sources.ts";
import { excludedBy, isElsewhere, labelsOf, lengthOf, type StreamAt } from "./stream-gates.ts";

/** A task that failed once is suspect in all its rollouts, including those read before the failure. The rare manifest
 *  with such a task is read a second time. */
export async function selectAdmitted(request: AdmitRequest): Promise<Admitted> {
  const { read, manifest, target, selection, options } = request;
  const family = selection.family ?? target?.record.family;
  if (family === undefined || (target === undefined && options.freshness !== undefined))
    throw refuse(
      "bad-record",
      { field: "target" },
      "a selection without a family, or with a budget of freshness, needs a target revision. Name one.",
    );
  const { feedback, unrecorded = "refuse" } = options;
  const inputs = await readInputs(read, manifest, { family, target, feedback, unrecorded });
  const at = { ...request, readers: request.readers ?? sourceReaders(read) };
  const first = await selectOnce(at, inputs, new Set());
  return first.failedTasks.size === 0 ? first : selectOnce(at, inputs, first.failedTasks);
}

type SelectRequest = AdmitRequest & { readers: SourceReaders };

async function selectOnce(request: SelectRequest, inputs: ManifestInputs, suspects: ReadonlySet<string>) {
  const { readers, manifest, options, selection } = request;
  const gates = makeGates({ ...inputs, requireVerdict: options.requireVerdict, failedTasks: suspects });
  const ledger = new LedgerTally();
  const failedTasks = new Set<string>();
  const { logprobKind } = selection;
  const admitted: Admitted = {
    ...{ rows: [], proofs: new Map(), sources: [], logprobKind, choiceOnly: false, ledger },
  };
  const used = new Map<string, Sealed<PolicyRevision>>();
  const names = new Set<string>();
  for (const { content: digest, envelope } of manifest.artifacts) {
    const content = await readers.readContent(digest);
    ledger.consider(content);
    if (content.ending.kind === "failed" && content.ending.owner === "task")
      failedTasks.add(taskKey(content));
    const at = { request, inputs, gates, names, family: inputs.family, digest, envelope, content, admitted };
    const gate = gateOf(at);
    if (!gate.open) {
      ledger.excludeArtifact(digest, content, { ...gate, ...lostAs(at) });
      continue;
    }
    const { rows: chosen, stands } = await chooseStreams(at, gate.weightBps);
    if (stands) names.add(content.rolloutId);
    if (chosen.length === 0) continue;
    admitted.rows.push(...chosen);
    for (const row of chosen)
      for (const { revision } of row.revisions)
        used.set(revision.id, inputs.revisions.find(revision, digest));
    await keepProofs(readers, { digest, envelope, content, proofs: admitted.proofs });
  }
  admitted.sources = [...used.values()].sort((a, b) => compareUtf8(a.record.id, b.record.id));
  return { ...admitted, failedTasks };
}

interface ArtifactAt extends StreamAt {
  readonly request: SelectRequest;
  readonly inputs: ManifestInputs;
  readonly gates: Gates;
  /** Ids of the rollouts admitted so far. */
  readonly names: ReadonlySet<string>;
  readonly envelope: Digest;
}

type ArtifactGate =
  | { open: true; weightBps: number }
  | {
      open: false;
      reason: ExclusionReason;
      detail?: string;
      budget?: DriftBudgets;
    };

function gateOf({ request, inputs, gates, names, digest, content }: ArtifactAt): ArtifactGate {
  const reason = gates.receiptGate(digest, content) ?? gates.endingGate(content);
  if (reason !== undefined) return { open: false, reason };
  const gate = gates.verdictGate(digest);
  if (!gate.open) return gate;
  // The id identifies a rollout: of two contents the one with the smaller digest counts.
  if (request.options.distinct !== undefined && names.has(content.rolloutId))
    return { open: false, reason: "duplicate-rollout" };
  const { freshness: budgets } = request.options;
  if (budgets === undefined || gates.isReleased(digest)) return gate;
  const { outcome, message } = measureDrift({
    content,
    target: request.target!.record,
    revision: (key) => inputs.revisions.record(key),
    budgets,
  });
  if (outcome !== "discarded" && outcome !== "quarantined") return gate;
  const harsh = outcome === "discarded" ? "stale" : "quarantined";
  return { open: false, reason: harsh, detail: message, budget: budgets };
}

/** Sealed ledgers name the reason of the whole artifact. But an artifact whose streams are all of other families or
 *  levels is no loss to this family. */
function lostAs({ request, inputs, content }: ArtifactAt): { lostAs?: ExclusionReason } {
  const { streams } = content;
  const own = streams.filter((each) => each.family === inputs.family);
  if (streams.length === 0 || own.some((each) => each.level === request.selection.level)) return {};
  return { lostAs: own.length === 0 ? "other-family" : "other-level" };
}

/** `stands`: no other content of the same rollout is admitted after this one. */
async function chooseStreams(
  at: ArtifactAt,
  weightBps: number,
): Promise<{ rows: AdmittedStream[]; stands: boolean }> {
  const { request, digest, envelope, content, admitted } = at;
  const { rolloutId, group, task } = content;
  const late = at.inputs.late.get(digest) ?? [];
  const rows: AdmittedStream[] = [];
  const left: { stream: Stream; index: number; reason: ExclusionReason }[] = [];
  const keeps = request.options.unlabelled === "keep";
  let stands = false;
  for (const [index, stream] of content.streams.entries()) {
    const reason = excludedBy(at, stream, index);
    const elsewhere = isElsewhere(at, stream, reason);
    const labels =
      reason === undefined || elsewhere
        ? await labelsOf(request.readers.readColumns, stream, late)
        : undefined;
    if (elsewhere && (labels !== undefined || keeps)) stands = true;
    if (reason !== undefined || (labels === undefined && !keeps)) {
      left.push({ stream, index, reason: reason ?? "unlabelled" });
      continue;
    }
    rows.push({
      ...{ content: digest, envelope, stream: index, rolloutId, group, task, weightBps, late },
      length: lengthOf(stream),
      samples: sampleCount(stream),
      reward: labels?.total ?? null,
      ...(stream.level === "step" ? { rewards: labels?.rewards as readonly number[] | undefined } : {}),
      revisions: revisionParts(stream),
    });
  }
  admitted.ledger.excludeStreams(digest, left, { whole: rows.length === 0 });
  return { rows, stands: stands || rows.length > 0 };
}

function revisionParts(stream: Stream): AdmittedStream["revisions"] {
  if (stream.level === "token") return stream.segments;
  return stream.steps.map((each, i) => ({ start: i, end: i + 1, revision: each.revision }));
}

/** Proofs of admitted rollouts, checked and unique by digest. */
async function keepProofs(
  { readRecord }: SourceReaders,
  at: { digest: Digest; envelope: Digest; content: RolloutContent; proofs: Map<Digest, Proof> },
): Promise<void> {
  const { digest, envelope, content, proofs } = at;
  const record = await readRecord(RolloutEnvelope, envelope);
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
