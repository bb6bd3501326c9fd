/** A line of a chat log as a rollout of one call: a request to OpenAI or Anthropic, and its response.
 *  In: JSON with `request` and `response`, the bodies as sent; also, if known, `id`, `session`, `task`, `time`,
 *  `latency_ms`, `cost_usd`, `status`, `reward`. Out: a draft, a pure function of the line. Data that the log lacks
 *  stays missing: no probability, reward, usage or cost is invented. A missing time is 0. */
import {
  digestJson,
  given,
  type Id,
  idFault,
  isObject,
  type Json,
  parseId,
  parseTime,
  RollbookError,
} from "../../base/index.ts";
import {
  type Dialect,
  dialectNamed,
  type FinishKind,
  finishKind,
} from "../../collect/gateway/dialects/index.ts";
import { type Ending, type EnvironmentKey, loggedPolicy, type RolloutDraft } from "../../contract/index.ts";

type ChatLogFields = Readonly<Record<string, unknown>>;

/** The policy family of logged models: one candidate, with an unknown method of choice. */
export const CHAT_LOG_FAMILY = parseId("chat-log");
const ENVIRONMENT = "chat-log@1" as EnvironmentKey;

export function isChatLog(value: Json): value is { request: Json; response: Json } {
  return isObject(value) && isObject(value.request) && isObject(value.response);
}

/** Says what a line lacks that has one of `request` and `response`. Undefined if it has none of them. */
export function chatLogFault(value: Json): string | undefined {
  const fields = ["request", "response"] as const;
  if (!isObject(value) || fields.every((field) => value[field] === undefined)) return undefined;
  const faults = fields.flatMap((field) =>
    isObject(value[field]) ? [] : [`${field} is ${value[field] === undefined ? "missing" : "not an object"}`],
  );
  return faults.join(", and ");
}

export function chatLogDraft(
  line: Json,
  { where, dataSource = "real" }: { where: string; dataSource?: "real" | "synthetic" | undefined },
): RolloutDraft {
  const log = line as ChatLogFields;
  const request = log.request as ChatLogFields;
  const { body: response, status } = bodyOf(log);
  const dialect = dialectOf(request, response);
  const asked = dialect.readRequest(request as Record<string, Json>);
  if (asked === undefined)
    throw new RollbookError(
      "bad-row",
      { where },
      `${where}: the request has no model with messages, input or prompt. Log the bodies as they were sent to OpenAI or Anthropic.`,
    );
  const reply = dialect.readReply(response as Record<string, Json>);
  const model = textAt(response.model) ?? asked.model;
  const startedAtMs = timeOf(log.time ?? log.timestamp ?? response.created ?? response.created_at);
  const durationMs = numberAt(log.latency_ms);
  const reward = numberAt(log.reward) ?? null;
  const task = digestJson("rollbook.chat-log-task.v1", asked.messages as Json).slice(7, 23);
  return {
    rolloutId: idOf(log.id ?? log.custom_id ?? response.id, () => `chat-${hashOf(line)}`),
    environment: ENVIRONMENT,
    task: { id: idOf(log.task, () => `t-${task}`) },
    ...given({
      group:
        log.session === undefined ? undefined : idOf(log.session, () => `g-${hashOf(log.session as Json)}`),
    }),
    seed: 0n,
    dataSource,
    sampling: {},
    calls: [
      {
        dialect: dialect.name,
        model: model.slice(0, 512),
        request: {
          messages: [...asked.messages] as Json[],
          ...given({ tools: asked.tools as Json | undefined }),
          parameters: asked.parameters as Record<string, Json>,
        },
        response: {
          messages: [...reply.messages] as Json[],
          ...given({ finishReason: reply.finishReason, status }),
        },
        ...given({ usage: reply.usage, costUsd: numberAt(log.cost_usd) }),
      },
    ] as RolloutDraft["calls"],
    streams: [{ level: "step", family: CHAT_LOG_FAMILY, steps: [stepOf(model, reward)] }],
    scores: reward === null ? [] : [{ name: parseId("reward"), value: reward, weight: 1 }],
    ending: endingOf({
      response,
      status,
      finish: finishKind(reply.finishReason, dialect),
      isAnswered: reply.messages.length > 0,
    }),
    envelope: {
      worker: parseId("chat-log"),
      startedAtMs,
      endedAtMs: startedAtMs + Math.max(0, Math.round(durationMs ?? 0)),
      ...(durationMs === undefined ? {} : { callTimes: [{ startedAtMs, durationMs }] }),
    },
  };
}

/** Some logs wrap the body and put the status beside it. */
function bodyOf(log: ChatLogFields): { body: ChatLogFields; status?: number } {
  const response = log.response as ChatLogFields;
  const status = numberAt(log.status ?? response.status_code);
  return { body: isObject(response.body) ? response.body : response, ...given({ status }) };
}

function dialectOf(request: ChatLogFields, response: ChatLogFields): Dialect {
  if (request.input !== undefined) return dialectNamed("openai-responses");
  if (request.prompt !== undefined) return dialectNamed("openai-completions");
  const isAnthropic =
    response.type === "message" || request.system !== undefined || response.type === "error";
  return dialectNamed(isAnthropic ? "anthropic-messages" : "openai-chat");
}

function stepOf(
  model: string,
  reward: number | null,
): Extract<RolloutDraft["streams"][number], { level: "step" }>["steps"][number] {
  const { id, digest } = loggedPolicy(CHAT_LOG_FAMILY).record;
  const candidate = { id: model.slice(0, 512), selectable: true, reasons: [], probability: null };
  return {
    ...{ revision: { id, digest }, call: 0, turn: 0, candidates: [candidate], chosen: 0, reward },
    reason: "as the chat log names it",
  };
}

function endingOf(of: {
  response: ChatLogFields;
  status?: number | undefined;
  finish: FinishKind;
  isAnswered: boolean;
}): Ending {
  const { response, status = 200, finish, isAnswered } = of;
  if (response.error !== undefined && response.error !== null)
    return { kind: "failed", owner: "provider", message: messageOf(response.error) };
  if (status >= 400 || !isAnswered)
    return { kind: "failed", owner: "provider", message: `status ${status}, no reply in the log` };
  switch (finish) {
    case "length":
      return { kind: "truncated", limit: "tokens" };
    case "tools":
      // The tools ran elsewhere, and another line holds the rest of the conversation.
      return { kind: "truncated", limit: "turns" };
    case "stop":
    case "other":
      return { kind: "terminal" };
    default:
      return finish satisfies never;
  }
}

function messageOf(error: unknown): string {
  const message = isObject(error) ? error.message : error;
  return typeof message === "string" && message !== ""
    ? message.slice(0, 2000)
    : "an error without a message";
}

/** Seconds since 1970, as providers write them, milliseconds, or ISO 8601. 0 if the time is missing. */
function timeOf(value: unknown): number {
  if (typeof value === "string") return Math.max(0, parseTime(value)?.atMs ?? 0);
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) return 0;
  return Math.round(value < 1e11 ? value * 1000 : value);
}

function idOf(value: unknown, otherwise: () => string): Id {
  const text = typeof value === "number" ? String(value) : value;
  return parseId(typeof text === "string" && idFault(text) === undefined ? text : otherwise());
}

function hashOf(value: Json): string {
  return digestJson("rollbook.chat-log.v1", value).slice(7, 23);
}

function numberAt(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

function textAt(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
