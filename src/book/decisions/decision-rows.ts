/** Reads decision rows from a book: from admitted rollouts, or from the rows of a sealed batch.
 *  In: an open book and a request, or a batch. Out: rows one at a time; admitted rows are sorted by rollout id. */
import { compareUtf8, type Digest } from "../../base/index.ts";
import { Manifest, RolloutContent, RolloutEnvelope, type StepStream } from "../../contract/index.ts";
import { labelSteps } from "../../keep/admit/index.ts";
import { readBatch } from "../../keep/batch/index.ts";
import type { LoggedRow } from "../../learn/index.ts";
import { readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";
import {
  type AdmittedRequest,
  type AdmittedRollouts,
  admittedRollouts,
  familiesAt,
} from "../rollouts/index.ts";
import { decisionsOf } from "./decisions-of.ts";

export type DecisionRequest = Omit<AdmittedRequest, "level">;

interface AdmittedDecisions {
  readonly admitted: AdmittedRollouts;
  rows(): AsyncGenerator<LoggedRow>;
}

/** Off-policy by default: no age limit, and probabilities are required. The request can change both. */
export async function decisionRows(
  book: OpenBook,
  request: DecisionRequest = {},
): Promise<AdmittedDecisions> {
  const admitted = await admittedRollouts(book, { ...request, level: "step" });
  return { admitted, rows: () => rowsOf([admitted], request.feedback) };
}

/** Reads the decisions of every family if none is named: for inspection, not for training. */
export async function everyDecision(
  book: OpenBook,
  request: DecisionRequest,
): Promise<{ admitted: readonly AdmittedRollouts[]; rows(): AsyncGenerator<LoggedRow> }> {
  const families =
    request.family === undefined ? await familiesAt(book, await book.index(), "step") : [request.family];
  const admitted: AdmittedRollouts[] = [];
  for (const family of families)
    admitted.push(await admittedRollouts(book, { ...request, family, level: "step" }));
  return { admitted, rows: () => rowsOf(admitted, request.feedback) };
}

async function* rowsOf(
  admitted: readonly AdmittedRollouts[],
  feedback: string | undefined,
): AsyncGenerator<LoggedRow> {
  const ordered = admitted
    .flatMap(({ rows, read }) => rows.map((row) => ({ row, read })))
    .sort((a, b) => compareUtf8(a.row.rolloutId, b.row.rolloutId) || a.row.stream - b.row.stream);
  for (const { row, read } of ordered) {
    const content = await readRecord(read, RolloutContent, row.content);
    const { startedAtMs } = await readRecord(read, RolloutEnvelope, row.envelope);
    const stream = content.streams[row.stream] as StepStream;
    const labels = labelSteps(stream, row.late);
    yield* await decisionsOf(read, {
      ...{ content, stream: row.stream, startedAtMs },
      // A chain that lacks a reward is unlabelled as a whole, as in a batch.
      rewards: labels?.rewards ?? stream.steps.map(() => null),
      rewardFrom: rewardFrom(labels?.from, feedback),
    });
  }
}

/** Decisions of a step batch, with the rewards of its rows. */
export async function* rowsOfBatch(
  read: (digest: Digest) => ReturnType<OpenBook["store"]["get"]>,
  digest: Digest,
): AsyncGenerator<LoggedRow> {
  const batch = await readBatch(read, digest);
  if (batch.level !== "step") return;
  const manifest = await readRecord(read, Manifest, batch.record.manifest);
  const envelopes = new Map(manifest.artifacts.map(({ content, envelope }) => [content, envelope]));
  const { feedback } = batch.record.options;
  for await (const row of batch.rows()) {
    const content = await readRecord(read, RolloutContent, row.content);
    const { startedAtMs } = await readRecord(read, RolloutEnvelope, envelopes.get(row.content)!);
    const { steps } = content.streams[row.stream] as StepStream;
    const recorded = steps.every(({ reward }) => reward !== null);
    yield* await decisionsOf(read, {
      ...{ content, stream: row.stream, startedAtMs },
      rewards: row.steps.map(({ reward }) => reward),
      rewardFrom: rewardFrom(recorded ? "recorded" : "late", feedback),
    });
  }
}

function rewardFrom(from: "recorded" | "late" | undefined, feedback: string | undefined): string {
  return from === "late" ? `feedback:${feedback}` : "recorded";
}
