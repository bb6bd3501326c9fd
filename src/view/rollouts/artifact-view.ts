/** Renders artifacts for a terminal.
 *  In: records. Out: text. */

import type { Digest } from "../../base/index.ts";
import type { IndexedRecord } from "../../book/open/index.ts";
import { type ListedRollout, type RolloutDetails, validatorKey } from "../../book/rollouts/index.ts";
import {
  type Ending,
  Feedback,
  type Proof,
  QuarantineRelease,
  Receipt,
  type Stream,
  Verdict,
} from "../../contract/index.ts";
import { figure, page, plural, short, table, timeText } from "../format.ts";

export function renderArtifacts(rows: readonly ListedRollout[]): string {
  return table(rows, [
    { title: "ROLLOUT", cell: (each) => each.rolloutId },
    { title: "ENDED", cell: endedCell },
    { title: "EXPERIMENT", cell: (each) => each.experiment ?? "-" },
    { title: "TASK", cell: ({ task, taskTitle }) => brief(taskTitle ?? task) },
    { title: "CHOSEN", cell: ({ models }) => brief(models.join(",")) || "-" },
    { title: "CALLS", align: "right", cell: (each) => String(each.calls) },
    { title: "REWARD", align: "right", cell: rewardCell },
    { title: "ENDING", cell: endingCell },
  ]);
}

/** Reward, or late feedback if there is no reward. */
function rewardCell({ score, feedback }: ListedRollout): string {
  if (score !== null) return figure(score);
  return feedback.map(({ name, value }) => `${name} ${figure(value)}`).join(", ") || "-";
}

/** A start of 0 means that the rollout was imported without a time. */
function endedCell({ startedAtMs, endedAtMs }: ListedRollout): string {
  return startedAtMs === 0 ? "-" : timeText(endedAtMs);
}

/** An abandoned run is not a result; the run that followed it is. */
function endingCell({ ending, triedAgain }: ListedRollout): string {
  return triedAgain ? `${ending}, tried again` : ending;
}

function brief(text: string): string {
  const [line = ""] = text.split("\n");
  return line.length > 40 ? `${line.slice(0, 39)}…` : line;
}

/** One row of `artifact ls --revisions`, as JSON. `released` holds the records of the newest release of each family. */
export function revisionRow(
  { digest, family, id, fields }: IndexedRecord,
  released: ReadonlySet<Digest>,
): Record<string, unknown> {
  return {
    ...{ family, id, kind: kindOf(id!, fields), digest: fields.digest, record: digest },
    number: fields.number,
    released: released.has(digest),
  };
}

export function renderRevisions(revisions: readonly IndexedRecord[], released: ReadonlySet<Digest>): string {
  return table(revisions, [
    { title: "REVISION", cell: (each) => each.id! },
    { title: "FAMILY", cell: (each) => each.family! },
    { title: "KIND", cell: ({ id, fields }) => kindOf(id!, fields) },
    { title: "WEIGHTS", cell: (each) => short(each.fields.digest as string) },
    { title: "RECORD", cell: (each) => short(each.digest) },
    { title: "RELEASED", cell: (each) => (released.has(each.digest) ? "latest release" : "") },
  ]);
}

/** Kind of a revision, from the id forms of recorded routers, agents and logs. Any other revision was trained or
 *  imported. */
function kindOf(id: string, fields: IndexedRecord["fields"]): string {
  const digits = String(fields.digest).slice(7, 19);
  if (id === `router-${digits}`) return "router";
  if (id === `agent-${digits}`) return "agent";
  if (id === "agent") return "client";
  return id === "logged" ? "log" : "policy";
}

/** Renders the facts of a rollout's records beside its conversation: digests, streams, runs, signers. */
export function renderRecords(
  { digest: contentDigest, content, envelopes, about }: RolloutDetails,
  taskFailures: readonly string[],
): string {
  const { seed, streams } = content;
  const standing = standingVerdicts(about);
  const lines = [
    `  content      ${contentDigest}`,
    `  seed         ${seed}`,
    ...streams.map((stream) => `  ${streamText(stream)}`),
    ...envelopes.flatMap(({ digest, envelope, signers }) => [
      `  envelope     ${digest}`,
      `    run by ${envelope.worker}, attempt ${envelope.attempt}, in ${envelope.endedAtMs - envelope.startedAtMs} ms`,
      ...(envelope.proofs.length === 0
        ? ["    no proof of execution"]
        : envelope.proofs.map((each) => `    ${proofText(each)}`)),
      ...(signers.length === 0 ? ["    not signed"] : signers.map((signer) => `    signed by ${signer}`)),
    ]),
    ...about.filter(({ kind }) => kind !== Feedback.kind).map((each) => `  ${saying(each, standing)}`),
    ...(taskFailures.length === 0
      ? []
      : [`  left out     task-quarantined: the task made ${taskFailures.join(", ")} fail`]),
  ];
  return page(lines);
}

/** `verify` checks all proofs. */
function proofText(proof: Proof): string {
  const verified = "`rollbook artifact verify`";
  switch (proof.kind) {
    case "call-log":
      return `proof call-log: the digest of its calls in their order, which ${verified} recomputes`;
    case "commitment":
      return `proof commitment: its worker fixed the content before others saw it, which ${verified} recomputes`;
    case "execution":
      return `proof execution: a record of what ran (${proof.reference})`;
    case "validator-bundle":
      return `proof validator-bundle: what validators said (${proof.reference})`;
    default:
      return proof satisfies never;
  }
}

function streamText(stream: Stream): string {
  if (stream.level === "token") {
    const { length, samples, logprobKind, segments, columns } = stream;
    const by = named(segments.map(({ revision }) => revision.id));
    return `tokens       ${plural(length, "token")}, ${samples} sampled by ${by}, ${logprobKind} logprobs${columns.rewards ? "" : ", unlabelled"}`;
  }
  const by = named(stream.steps.map(decider));
  return `decisions    ${plural(stream.steps.length, "step")} of ${stream.family}, by ${by}, ${stepRewards(stream)}`;
}

/** Users know the policy; a router is named by the digest of its settings. */
function decider({ policy, revision }: Extract<Stream, { level: "step" }>["steps"][number]): string {
  return policy === undefined ? revision.id : `${policy.id} (in ${revision.id})`;
}

const named = (names: readonly string[]) => [...new Set(names)].join(", ");

function stepRewards(stream: Extract<Stream, { level: "step" }>): string {
  const labelled = stream.steps.filter((step) => step.reward !== null);
  if (labelled.length === 0) return "unlabelled";
  return `reward ${figure(labelled.reduce((sum, step) => sum + step.reward!, 0))}`;
}

export function endingText(ending: Ending): string {
  switch (ending.kind) {
    case "terminal":
    case "cancelled":
      return ending.kind;
    case "truncated":
      return `truncated by its limit of ${ending.limit}`;
    case "failed":
      return `failed, owner ${ending.owner}: ${ending.message}`;
    default:
      return ending satisfies never;
  }
}

/** Digests of the verdicts that count: the newest of each validator and family. `about` is in order of time. */
function standingVerdicts(about: RolloutDetails["about"]): ReadonlySet<Digest> {
  const verdicts = about.filter(({ kind }) => kind === Verdict.kind);
  return new Set(new Map(verdicts.map(({ digest, fields }) => [validatorKey(fields), digest])).values());
}

function saying({ kind, digest, fields }: IndexedRecord, standing: ReadonlySet<Digest>): string {
  const time = `at ${timeText(fields.atMs as number)}`;
  switch (kind) {
    case Receipt.kind:
      return `${receiptText(fields)}, ${time} (${short(digest)})`;
    case Verdict.kind:
      return `verdict      ${verdictText(fields)}, ${time}${standing.has(digest) ? "" : ", replaced by a later one"}`;
    case QuarantineRelease.kind:
      return `release      by ${fields.by}: ${fields.reason}`;
    default:
      return `${kind} ${short(digest)}`;
  }
}

/** The full weight is not worth a word. */
function verdictText({ disposition, validator, family, weightBps }: IndexedRecord["fields"]): string {
  const judged = family === undefined ? "" : ` for the family ${family}`;
  const weight = disposition === "normalized" ? `, weight ${figure((weightBps as number) / 100)} %` : "";
  return `${disposition} by ${validator}${judged}${weight}`;
}

/** A receipt says that a rollout was handed in. If the age was judged too, the message begins with the outcome. */
function receiptText({ outcome, message }: Readonly<Record<string, unknown>>): string {
  if (outcome === "stored") return "receipt      stored";
  if (outcome === "unknown") return `age check    none: ${message}`;
  const text = String(message)
    .replace("unmeasured-mismatch", "distance from the target unknown")
    .replace(/policy-age-ms(?=;|$)/, "age of the policy unknown");
  return text.startsWith(String(outcome))
    ? `age check    ${text.replace(/^discarded/, "rejected").replace(";", ":")}`
    : `receipt      ${outcome}: ${text}`;
}
