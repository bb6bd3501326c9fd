/** Routing rows from the step streams of a book: decision and outcome are joined by content digest and step, never by
 *  position. In: an open book, filters. Out: rows, by rollout id. Late feedback of the given name fills a missing reward. */
import type { Digest } from "../../base/index.ts";
import { openMessage } from "../../contract/call.ts";
import {
  Call,
  RolloutContent,
  RolloutEnvelope,
  type Step,
  type StepStream,
  Task,
} from "../../contract/index.ts";
import { DECISION_LOG, stateOfTask } from "../../convert/decision-rollouts.ts";
import { modelsOf, ROUTING_SCHEMA_VERSION, type RoutingRow } from "../../convert/routing-jsonl.ts";
import { landingIndex, lateRewards } from "../../keep/admit/labels.ts";
import { isUsers, promptOfMessages } from "../../policy/request-prompt.ts";
import type { BlobStore } from "../../store/index.ts";
import { readRecord } from "../../store/read-record.ts";
import type { BookIndex } from "../find/book-index.ts";
import { feedbackOf } from "../feedback.ts";
import { artifactsOf } from "../find/resolve.ts";

export interface RowFilters {
  readonly family?: string;
  readonly session?: string;
  readonly dataSource?: "real" | "synthetic";
  /** Milliseconds since the epoch: from inclusive, to exclusive. */
  readonly sinceMs?: number;
  readonly untilMs?: number;
  /** The name of late feedback that stands for a missing reward. */
  readonly feedback?: string;
}

type Store = Pick<BlobStore, "get">;

export async function rowsOfBook(store: Store, index: BookIndex, filters: RowFilters): Promise<RoutingRow[]> {
  const rows: RoutingRow[] = [];
  for await (const row of eachRowOfBook(store, index, { filters })) rows.push(row);
  return rows;
}

/** One row at a time, by rollout id. `skip` passes over rollouts without reading them: it gets their id and samples. */
export async function* eachRowOfBook(
  store: Store,
  index: BookIndex,
  { filters, skip }: { filters: RowFilters; skip?: (rolloutId: string, samples: number) => boolean },
): AsyncGenerator<RoutingRow> {
  const late = lateRewards(await feedbackOf(store, index), filters.feedback);
  for (const { content: found, envelopes } of artifactsOf(index)) {
    if (skip?.(found.id!, found.fields.samples as number)) continue;
    const content = await readRecord(store, RolloutContent, found.digest);
    const { startedAtMs } = await readRecord(store, RolloutEnvelope, envelopes[0]!);
    const session = content.group ?? content.rolloutId;
    if (filters.session !== undefined && filters.session !== session) continue;
    if (filters.dataSource !== undefined && filters.dataSource !== content.dataSource) continue;
    if (startedAtMs < (filters.sinceMs ?? 0) || startedAtMs >= (filters.untilMs ?? Infinity)) continue;
    const given = late.get(found.digest) ?? [];
    for (const [s, stream] of content.streams.entries()) {
      if (stream.level !== "step") continue;
      if (filters.family !== undefined && filters.family !== stream.family) continue;
      const landed = new Map(given.map((each) => [landingIndex(stream, undefined, each), each.value]));
      for (let i = 0; i < stream.steps.length; i++)
        yield {
          ...rowOf({ content, stream, at: i, landed: landed.get(i), feedback: filters.feedback }),
          decision_id: decisionId(content.rolloutId, s, i),
          session_id: session,
          timestamp: new Date(startedAtMs).toISOString(),
          state: await stateOf(store, content, stream, i),
        };
    }
  }
}

/** A decision is known by its rollout, its stream and its step. */
function decisionId(rolloutId: string, stream: number, step: number): string {
  return `${rolloutId}/${stream}/${step}`;
}

/** The rollout of a decision id. */
export function rolloutOf(decision: string): string {
  return decision.slice(0, decision.lastIndexOf("/", decision.lastIndexOf("/") - 1));
}

type Outcome = Omit<RoutingRow, "decision_id" | "session_id" | "timestamp" | "state">;

function rowOf(options: {
  content: RolloutContent;
  stream: StepStream;
  at: number;
  landed: number | undefined;
  feedback: string | undefined;
}): Outcome {
  const { content, stream, at, landed, feedback } = options;
  const step = stream.steps[at]!;
  const chosen = step.candidates[step.chosen]!;
  return {
    schema_version: ROUTING_SCHEMA_VERSION,
    task_id: content.task.id,
    agent_role: stream.family,
    task_complexity_score: null,
    primary_failure_count: null,
    ...modelsOf(
      step.candidates.map((one) => one.id),
      chosen.id,
    ),
    propensity: chosen.probability ?? step.propensity ?? null,
    reward: step.reward ?? landed ?? null,
    terminal: at === stream.steps.length - 1 && content.ending.kind === "terminal",
    reward_version: step.reward === null && landed !== undefined ? `feedback:${feedback}` : "recorded",
    data_source: content.dataSource,
  };
}

async function stateOf(
  store: Store,
  content: RolloutContent,
  stream: StepStream,
  at: number,
): Promise<RoutingRow["state"]> {
  const step = stream.steps[at]!;
  const last = at === stream.steps.length - 1;
  const seen = await seenBy(store, content, step);
  return {
    prompt: seen.prompt,
    fields: seen.fields,
    candidates: step.candidates.map((one) => ({
      id: one.id,
      selectable: one.selectable,
      reasons: [...one.reasons],
      probability: one.probability,
      features: one.seen ?? seen.features[one.id] ?? {},
    })),
    // Scores are of the whole rollout: they belong to its last decision.
    terms: last
      ? Object.fromEntries(content.scores.map(({ name, value, weight }) => [name, { value, weight }]))
      : {},
  };
}

/** What the policy had before it: the prompt of its call, or the task of a decision that was made elsewhere. */
async function seenBy(store: Store, { environment, task, calls }: RolloutContent, step: Step) {
  if (environment === DECISION_LOG && task.digest !== undefined)
    return stateOfTask(await readRecord(store, Task, task.digest));
  const prompt = await promptOf(store, calls[step.call ?? 0]);
  return { prompt, fields: step.seen ?? {}, features: {} as Features };
}

type Features = Readonly<Record<string, Record<string, number>>>;

/** As the router reads it. A rollout without calls has none. */
async function promptOf(store: Store, digest: Digest | undefined): Promise<string> {
  if (digest === undefined) return "";
  const { request } = await readRecord(store, Call, digest);
  // From the end: a long history is not read for its last question.
  const passed: unknown[] = [];
  for (const message of [...request.messages].reverse()) {
    const blob = await store.get(message);
    if (blob === undefined) continue;
    passed.unshift(openMessage(blob.bytes, message));
    if (isUsers(passed[0])) break;
  }
  return promptOfMessages(passed);
}
