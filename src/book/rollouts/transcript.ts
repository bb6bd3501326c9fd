/** Renders a rollout for a person: the conversation turn by turn, the cost of each call, the router's choices, the
 *  outcome.
 *  In: an open book, the name of a rollout. Out: a transcript. A message that several calls carry appears once, in the
 *  first call that has it. Writes nothing. */
import { type Digest, given, type Json } from "../../base/index.ts";
import {
  Call,
  type Delivery,
  type Ending,
  Feedback,
  type ReadBlob,
  type RolloutContent,
  type RolloutEnvelope,
  recordedReward,
  type Step,
  Task,
} from "../../contract/index.ts";
import { type ChatTurn, readTurn, sameTurn, toolName } from "../../convert/chat/index.ts";
import { countedFeedback } from "../../keep/admit/index.ts";
import { readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";
import { lastRun, type RolloutDetails, showRollout } from "./rollouts.ts";

export interface Transcript {
  readonly rolloutId: string;
  readonly content: Digest;
  readonly environment: string;
  readonly task: {
    readonly id: string;
    readonly prompt?: Json;
    readonly payload?: Json;
    readonly label?: Json;
  };
  readonly group: string | null;
  readonly experiment: string | null;
  readonly dataSource: "real" | "synthetic";
  readonly ending: Ending;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly calls: readonly TranscriptCall[];
  /** Choices of calls that are not recorded, or of no call. */
  readonly choices: readonly TranscriptChoice[];
  readonly scores: readonly { readonly name: string; readonly value: number; readonly weight: number }[];
  /** Reward that the rollout was sealed with; null if unlabelled. */
  readonly reward: number | null;
  readonly feedback: readonly TranscriptFeedback[];
  readonly totals: TranscriptTotals;
  readonly finalState?: unknown;
}

/** Each total is null if no call states it. */
interface TranscriptTotals {
  readonly calls: number;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly costUsd: number | null;
  /** Time spent in calls. */
  readonly callMs: number | null;
}

export interface TranscriptCall {
  readonly index: number;
  readonly digest: Digest;
  readonly dialect: Call["dialect"];
  readonly model: string;
  readonly status?: number | undefined;
  readonly finishReason?: string | undefined;
  readonly usage?: Call["usage"];
  readonly costUsd?: number | undefined;
  readonly startedAtMs?: number | undefined;
  readonly firstByteMs?: number | undefined;
  readonly durationMs?: number | undefined;
  readonly delivery?: Delivery | undefined;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly tools?: Digest | undefined;
  /** Names of the tools that the model was offered. */
  readonly toolNames: readonly string[];
  /** Earlier call whose conversation this call continues, and how many messages they share; null if it starts a
   *  conversation. */
  readonly continues: { readonly call: number; readonly messages: number; readonly of: number } | null;
  /** New messages of the call, then the reply. */
  readonly turns: readonly TranscriptTurn[];
  readonly choices: readonly TranscriptChoice[];
}

export interface TranscriptTurn extends ChatTurn {
  readonly message: Digest;
  readonly isReply: boolean;
}

export interface TranscriptChoice {
  readonly family: string;
  readonly revision: string;
  readonly chosen: string;
  /** Null if not logged. */
  readonly probability: number | null;
  /** Null if unlabelled, or if the reward of the rollout came later and is stored at its last choice. */
  readonly reward: number | null;
  readonly reason?: string | undefined;
  /** Constraints that the chosen candidate breaks, because every candidate breaks one. */
  readonly relaxed?: readonly string[] | undefined;
  readonly confidence?: number | undefined;
  readonly candidates: readonly {
    readonly id: string;
    readonly probability: number | null;
    readonly selectable: boolean;
    readonly reasons: readonly string[];
  }[];
}

interface TranscriptFeedback {
  readonly name: string;
  readonly value: number;
  readonly source: string;
  readonly call?: number | undefined;
  readonly atMs: number;
}

export async function readTranscript(book: OpenBook, name: string): Promise<Transcript> {
  return transcriptOf(book, await showRollout(book, name));
}

export async function transcriptOf(book: OpenBook, details: RolloutDetails): Promise<Transcript> {
  const { digest, content, envelopes, about } = details;
  const { envelope } = lastRun(envelopes);
  const read: ReadBlob = (each) => book.store.get(each);
  const calls = await readCalls(read, content, envelope);
  return {
    ...{ rolloutId: content.rolloutId, content: digest, environment: content.environment },
    task: await readTask(read, content),
    ...{ group: content.group ?? null, experiment: envelope.experiment ?? null },
    ...{ dataSource: content.dataSource, ending: content.ending },
    ...{ startedAtMs: envelope.startedAtMs, endedAtMs: envelope.endedAtMs },
    calls,
    choices: choicesOf(content, undefined),
    scores: content.scores.map(({ name, value, weight }) => ({ name, value, weight })),
    reward: recordedReward(content),
    feedback: countedFeedback(
      about
        .filter(({ kind }) => kind === Feedback.kind)
        .map(({ digest: each, fields }) => ({ digest: each, record: fields as unknown as Feedback })),
    ).map(({ record: { name, value, source, call, atMs } }) => ({ name, value, source, call, atMs })),
    totals: totalsOf(calls),
    ...(await finalStateOf(read, content)),
  };
}

async function readTask(read: ReadBlob, { task }: RolloutContent): Promise<Transcript["task"]> {
  const blob = task.digest === undefined ? undefined : await read(task.digest);
  if (blob === undefined) return { id: task.id };
  const { prompt, payload, label } = await readRecord({ get: read }, Task, task.digest!);
  return {
    id: task.id,
    ...(given({ prompt, payload: isEmpty(payload) ? undefined : payload, label }) as { prompt?: Json }),
  };
}

function isEmpty(payload: object): boolean {
  return Object.keys(payload).length === 0;
}

async function finalStateOf(
  read: ReadBlob,
  { finalState }: RolloutContent,
): Promise<{ finalState?: unknown }> {
  // An imported artifact may name a state that was not imported.
  const blob = finalState === undefined ? undefined : await read(finalState);
  return blob === undefined ? {} : { finalState: JSON.parse(Buffer.from(blob.bytes).toString()) };
}

async function readCalls(
  read: ReadBlob,
  content: RolloutContent,
  { callTimes = [] }: RolloutEnvelope,
): Promise<TranscriptCall[]> {
  const messages = new Messages(read);
  const before: Conversation[] = [];
  const calls: TranscriptCall[] = [];
  for (const [index, digest] of content.calls.entries()) {
    const record = await readRecord({ get: read }, Call, digest);
    const { request, response, model, dialect, usage, costUsd, declaredLatencyMs } = record;
    const asked = await messages.read(request.messages);
    const answered = await messages.read(response.messages);
    const continues = bestMatch(before, asked);
    before.push([...asked, ...answered]);
    const { startedAtMs, firstByteMs, durationMs = declaredLatencyMs, delivery } = callTimes[index] ?? {};
    calls.push({
      ...{ index, digest, dialect, model, status: response.status, finishReason: response.finishReason },
      ...{ usage, costUsd, startedAtMs, firstByteMs, durationMs, delivery, continues },
      ...{ parameters: request.parameters, tools: request.tools },
      toolNames: request.tools === undefined ? [] : await readToolNames(read, request.tools),
      turns: [
        ...asked.slice(continues?.messages ?? 0).map((turn) => ({ ...turn, isReply: false })),
        ...answered.map((turn) => ({ ...turn, isReply: true })),
      ],
      choices: choicesOf(content, index),
    });
  }
  return calls;
}

async function readToolNames(read: ReadBlob, tools: Digest): Promise<string[]> {
  const blob = await read(tools);
  const offered: unknown = blob === undefined ? [] : JSON.parse(Buffer.from(blob.bytes).toString());
  return Array.isArray(offered) ? offered.map(toolName) : [];
}

type Conversation = readonly (ChatTurn & { readonly message: Digest })[];

/** Parses each message once, even if it is sent again. */
class Messages {
  readonly #read: ReadBlob;
  readonly #known = new Map<Digest, ChatTurn>();

  constructor(read: ReadBlob) {
    this.#read = read;
  }

  async read(digests: readonly Digest[]): Promise<Conversation> {
    const turns: (ChatTurn & { message: Digest })[] = [];
    for (const message of digests) {
      const turn = this.#known.get(message) ?? (await this.#open(message));
      this.#known.set(message, turn);
      turns.push({ ...turn, message });
    }
    return turns;
  }

  async #open(digest: Digest): Promise<ChatTurn> {
    const blob = await this.#read(digest);
    if (blob === undefined)
      return { role: "missing", parts: [{ kind: "other", json: `${digest} is not in the book` }] };
    return readTurn(JSON.parse(Buffer.from(blob.bytes).toString()));
  }
}

/** Earlier call that shares the longest beginning; the latest one if several do. */
function bestMatch(before: readonly Conversation[], asked: Conversation): TranscriptCall["continues"] {
  let best: TranscriptCall["continues"] = null;
  for (const [call, conversation] of before.entries()) {
    const messages = sharedLength(conversation, asked);
    // A system prompt alone does not make two calls one conversation.
    const says = asked.slice(0, messages).some(({ role }) => role !== "system");
    if (says && messages >= (best?.messages ?? 1)) best = { call, messages, of: conversation.length };
  }
  return best;
}

function sharedLength(a: Conversation, b: Conversation): number {
  const most = Math.min(a.length, b.length);
  let i = 0;
  while (i < most && (a[i]!.message === b[i]!.message || sameTurn(a[i]!, b[i]!))) i++;
  return i;
}

function choicesOf({ streams, calls }: RolloutContent, call: number | undefined): TranscriptChoice[] {
  return streams.flatMap((stream) =>
    stream.level === "token"
      ? []
      : stream.steps
          .filter(
            (step) => (step.call !== undefined && step.call < calls.length ? step.call : undefined) === call,
          )
          .map((step) => ({
            ...choiceOf(stream.family, step),
            ...(isRewardedLater(step, stream) ? { reward: null } : {}),
          })),
  );
}

/** True if the stream has its whole reward at its last step. The earlier steps have 0, which says nothing about
 *  them. */
export function isRewardedLater(step: Step, { steps }: { readonly steps: readonly Step[] }): boolean {
  const last = steps.at(-1)!;
  return step !== last && last.reward !== null && steps.every((each) => each === last || each.reward === 0);
}

function choiceOf(family: string, step: Step): TranscriptChoice {
  const { candidates, chosen, revision, reward, reason, relaxed, confidence, propensity } = step;
  return {
    ...{ family, revision: revision.id, chosen: candidates[chosen]!.id, reward },
    ...{ reason, relaxed, confidence },
    probability: candidates[chosen]!.probability ?? propensity ?? null,
    candidates: candidates.map(({ id, probability, selectable, reasons }, i) => ({
      // An imported log may only have the probability of its choice.
      ...{
        id,
        probability: probability ?? (i === chosen ? (propensity ?? null) : null),
        selectable,
        reasons,
      },
    })),
  };
}

function totalsOf(calls: readonly TranscriptCall[]): TranscriptTotals {
  const sum = (of: (call: TranscriptCall) => number | undefined) => {
    const told = calls.map(of).filter((each) => each !== undefined);
    return told.length === 0 ? null : told.reduce((total, each) => total + each, 0);
  };
  return {
    calls: calls.length,
    promptTokens: sum(({ usage }) => usage?.promptTokens),
    completionTokens: sum(({ usage }) => usage?.completionTokens),
    costUsd: sum(({ costUsd }) => costUsd),
    callMs: sum(({ durationMs }) => durationMs),
  };
}
