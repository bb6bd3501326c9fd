/** How artifacts look on a terminal. In: records. Out: text. */

import type { IndexedRecord } from "../book/find/book-index.ts";
import type { Artifact } from "../book/find/resolve.ts";
import type { Ending, RolloutContent, RolloutEnvelope, Stream } from "../contract/index.ts";
import { figure, plural, printable, short, table } from "./format.ts";

/** One row of `artifact ls`, as JSON. */
export function artifactRow({ content, envelopes }: Artifact): Record<string, unknown> {
  return { rolloutId: content.id, content: content.digest, envelopes, ...content.fields };
}

export function renderArtifacts(artifacts: readonly Artifact[]): string {
  const field = (name: string) => (each: Artifact) => String(each.content.fields[name] ?? "-");
  const list = (name: string) => (each: Artifact) => (each.content.fields[name] as string[]).join(",");
  return table(artifacts, [
    { title: "ROLLOUT", cell: (each) => each.content.id! },
    { title: "DIGEST", cell: (each) => short(each.content.digest) },
    { title: "TASK", cell: field("task") },
    { title: "GROUP", cell: field("group") },
    { title: "ENDING", cell: field("ending") },
    { title: "FAMILIES", cell: list("families") },
    { title: "SAMPLES", align: "right", cell: field("samples") },
    { title: "SCORE", align: "right", cell: (each) => scoreText(each.content.fields.score) },
  ]);
}

/** One row of `artifact ls --revisions`, as JSON. */
export function revisionRow({ digest, family, id, fields }: IndexedRecord): Record<string, unknown> {
  return { family, id, digest: fields.digest, record: digest, number: fields.number };
}

export function renderRevisions(revisions: readonly IndexedRecord[]): string {
  return table(revisions, [
    { title: "REVISION", cell: (each) => each.id! },
    { title: "FAMILY", cell: (each) => each.family! },
    { title: "WEIGHTS", cell: (each) => short(each.fields.digest as string) },
    { title: "RECORD", cell: (each) => short(each.digest) },
  ]);
}

export interface ArtifactDetails {
  readonly contentDigest: string;
  readonly content: RolloutContent;
  readonly envelopes: readonly { digest: string; envelope: RolloutEnvelope; signers: readonly string[] }[];
  /** Records that say something about it: receipts, feedback, verdicts, releases. */
  readonly about: readonly string[];
}

export function renderArtifact({ contentDigest, content, envelopes, about }: ArtifactDetails): string {
  const { task, group, environment, seed, dataSource, calls, scores, streams } = content;
  const lines = [
    `rollout ${content.rolloutId}`,
    `  content      ${contentDigest}`,
    `  environment  ${environment}, task ${task.id}${group === undefined ? "" : `, group ${group}`}`,
    `  seed         ${seed} (${dataSource} data)`,
    `  ending       ${endingText(content.ending)}`,
    `  calls        ${calls.length}`,
    ...scores.map(({ name, value, weight }) => `  score        ${name} ${figure(value)} × ${figure(weight)}`),
    ...streams.map((stream, i) => `  stream ${i}     ${streamText(stream)}`),
    ...envelopes.flatMap(({ digest, envelope, signers }) => [
      `  envelope     ${digest}`,
      `    run by ${envelope.worker}, attempt ${envelope.attempt}, in ${envelope.endedAtMs - envelope.startedAtMs} ms`,
      `    ${plural(envelope.proofs.length, "proof")}: ${envelope.proofs.map((each) => each.kind).join(", ") || "-"}`,
      ...(signers.length === 0 ? ["    not signed"] : signers.map((signer) => `    signed by ${signer}`)),
    ]),
    ...about.map((each) => `  ${each}`),
  ];
  return lines.map((line) => `${printable(line)}\n`).join("");
}

function streamText(stream: Stream): string {
  const parts = stream.level === "token" ? stream.segments : stream.steps;
  const revisions = [...new Set(parts.map((part) => part.revision.id))].join(", ");
  const size =
    stream.level === "token"
      ? `${plural(stream.length, "token")}, ${stream.samples} sampled, ${stream.logprobKind} logprobs`
      : plural(stream.steps.length, "step");
  const reward =
    stream.level === "step" ? `, ${stepRewards(stream)}` : stream.columns.rewards ? "" : ", unlabelled";
  return `${stream.level} level of ${stream.family}: ${size}, by ${revisions}${reward}`;
}

function stepRewards(stream: Extract<Stream, { level: "step" }>): string {
  const labelled = stream.steps.filter((step) => step.reward !== null);
  if (labelled.length === 0) return "unlabelled";
  return `reward ${figure(labelled.reduce((sum, step) => sum + step.reward!, 0))}`;
}

function endingText(ending: Ending): string {
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

function scoreText(score: unknown): string {
  return typeof score === "number" ? figure(score) : "-";
}
