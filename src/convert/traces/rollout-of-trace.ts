/** A rollout in the exchange form from the data of a trace: calls, tokens, scores, the ending. Pure.
 *  If the trace has our extras, the result is the exported rollout. Otherwise nothing is invented: the seed is 0, the
 *  revision is that of the log, and there is no reward if the trace has none. */
import { type Digest, digestJson, given, type Id, idFault, type Json, parseId } from "../../base/index.ts";
import { type Ending, loggedPolicy, RolloutDraft } from "../../contract/index.ts";
import type { TraceExtras, TraceFields } from "./trace-extras.ts";
import { type TraceMessage, toOpenAi } from "./trace-messages.ts";

export interface TraceCall {
  readonly prompt: readonly TraceMessage[];
  readonly reply: readonly TraceMessage[];
  readonly model: string;
  readonly tools?: Json | undefined;
  readonly usage?: TraceFields | undefined;
  readonly costUsd?: number | undefined;
  readonly finishReason?: string | undefined;
}

export interface TraceTokens {
  readonly ids: readonly number[];
  readonly mask: readonly number[];
  /** 0 at positions with mask 0. */
  readonly logprobs: readonly number[];
}

export interface TracedRollout {
  readonly id: string;
  readonly environment: string;
  readonly task: string;
  readonly group: string | undefined;
  readonly dataSource: "real" | "synthetic";
  readonly sampling: TraceFields;
  readonly calls: readonly TraceCall[];
  readonly tokens: readonly TraceTokens[];
  readonly scores: readonly { readonly name: string; readonly value: number; readonly weight: number }[];
  readonly ending: Ending;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly extras: TraceExtras | undefined;
  /** The name of the format, which identifies the log's origin. */
  readonly format: string;
}

/** A trace in the form that the book imports: the rollout, and the records it refers to that the trace holds. */
export interface ReadTrace {
  /** Place of the trace in the file. */
  readonly where: string;
  readonly rollout: Record<string, Json>;
  readonly records: readonly TraceFields[];
}

export function tracedToRead(trace: TracedRollout, where: string): ReadTrace {
  return { where, rollout: rolloutOfTrace(trace), records: trace.extras?.records ?? [] };
}

/** Digest of the visible content of a trace. */
export function shownOf({ calls, tokens, scores }: TracedRollout): Digest {
  return digestJson("rollbook.trace-shown.v1", { calls, tokens, scores });
}

export function rolloutOfTrace(trace: TracedRollout): Record<string, Json> {
  const { extras, format } = trace;
  const envelope = {
    worker: format,
    startedAtMs: Math.max(0, Math.round(trace.startedAtMs)),
    endedAtMs: Math.max(0, Math.round(Math.max(trace.startedAtMs, trace.endedAtMs))),
    origin: { format, fields: { id: trace.id, ...(extras ? { content: extras.contentDigest } : {}) } },
  };
  if (extras?.whole !== undefined && extras.whole.shown === shownOf(trace))
    return { ...extras.whole.rollout, envelope };
  const family = parseId(format);
  const scores = trace.scores.map(({ name, ...rest }) => ({
    name: idOf(name, "score"),
    ...rest,
    ...(extras?.scorers[name] === undefined ? {} : { scorer: extras.scorers[name] }),
  }));
  return {
    schema: RolloutDraft.kind,
    ...(extras?.content ?? {
      rolloutId: idOf(trace.id, "r"),
      environment: `${idOf(trace.environment, "env")}@1`,
      task: { id: idOf(trace.task, "task") },
      ...(trace.group === undefined ? {} : { group: idOf(trace.group, "g") }),
      ...{ seed: "0", dataSource: trace.dataSource, sampling: trace.sampling },
      ending: trace.ending as unknown as Json,
    }),
    calls: trace.calls.map((call, i) => callWire(call, extras?.calls[i])),
    streams: streamsOf(trace, family),
    scores,
    envelope,
  } as Record<string, Json>;
}

/** The text itself if it is a valid id, else a digest of the text. */
function idOf(text: string, kind: string): Id {
  return parseId(
    idFault(text) === undefined ? text : `${kind}-${digestJson("rollbook.trace-id.v1", text).slice(7, 23)}`,
  );
}

function callWire(call: TraceCall, extras: TraceFields | undefined): Json {
  const { prompt, reply, model, tools, usage, costUsd, finishReason } = call;
  const known = extras ?? {
    ...{ dialect: "openai-chat", model: model.slice(0, 512), request: { parameters: {} } },
    response: finishReason === undefined ? {} : { finishReason },
    ...given({ usage, costUsd }),
  };
  return {
    ...known,
    request: {
      ...(known.request as TraceFields),
      messages: prompt.map(toOpenAi),
      ...(tools === undefined ? {} : { tools }),
    },
    response: { ...(known.response as TraceFields), messages: reply.map(toOpenAi) },
  };
}

function streamsOf(trace: TracedRollout, family: Id): Json[] {
  const { tokens, extras } = trace;
  const { id, digest } = loggedPolicy(family).record;
  const revision = { id, digest };
  const sampled = tokens.filter(({ mask }) => mask.includes(1));
  if (extras !== undefined && sampled.length === (extras.stream === null ? 0 : 1)) {
    const own =
      extras.stream === null ? [] : [[extras.at, { ...extras.stream, ...columns(sampled[0]!) }] as const];
    const known = [...own, ...extras.steps].sort(([a], [b]) => a - b);
    if (known.length > 0) return known.map(([, stream]) => stream as Json);
  }
  const reward =
    trace.scores.length === 0
      ? null
      : trace.scores.reduce((sum, { value, weight }) => sum + value * weight, 0);
  if (sampled.length > 0)
    return sampled.map((each) => ({
      ...{ level: "token", family, logprobKind: "sampling", revision, ...columns(each) },
      ...(reward === null ? {} : { rewards: rewardAtEnd(each, reward) }),
    }));
  const model = trace.calls.at(-1)?.model ?? "unknown";
  const candidate = { id: model.slice(0, 512), selectable: true, reasons: [], probability: null };
  return [
    {
      ...{ level: "step", family },
      steps: [
        {
          ...{ revision, turn: 0, candidates: [candidate], chosen: 0, reward },
          reason: `as ${trace.format} names it`,
        },
      ],
    },
  ];
}

function columns({ ids, mask, logprobs }: TraceTokens): { ids: Json; mask: Json; logprobs: Json } {
  return { ids: [...ids], mask: [...mask], logprobs: [...logprobs] };
}

/** Puts the reward on the last sampled token. */
function rewardAtEnd({ mask }: TraceTokens, reward: number): Json {
  const last = mask.lastIndexOf(1);
  return mask.map((_, i) => (i === last ? reward : 0));
}
