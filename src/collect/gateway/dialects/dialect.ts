/** What the gateway must know of a wire format. One file per format holds all of it: paths, fields, words. Functions are pure
 *  and take parsed JSON. */
import type { Call } from "../../../contract/index.ts";
import { countAt, type JsonObject } from "./json.ts";

export type DialectName = Exclude<Call["dialect"], "other">;

/** The vendors whose formats these are. An upstream speaks the formats of one of them, or of all. */
export const VENDORS = ["openai", "anthropic"] as const;
export type Vendor = (typeof VENDORS)[number];

/** The end of a reply, in one vocabulary for all formats. */
export type FinishKind = "stop" | "length" | "tools" | "other";

/** The inference servers that give exact token ids on request. */
type TokenServer = "vllm" | "sglang";

export interface RequestFacts {
  readonly model: string;
  readonly stream: boolean;
  /** The conversation as sent, system prompt first. */
  readonly messages: readonly unknown[];
  readonly tools?: unknown;
  /** The most tokens that a reply may have, where the request limits them. */
  readonly maxTokens: number | undefined;
  /** Everything else in the body. */
  readonly parameters: JsonObject;
}

export interface TokenUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens?: number;
}

/** Exact tokens, where the upstream gives them: one prompt, one sample per choice. */
export interface ReplyTokens {
  readonly prompt: readonly number[];
  readonly samples: readonly { readonly ids: readonly number[]; readonly logprobs: readonly number[] }[];
}

export interface ReplyFacts {
  /** What the model said, in the form in which a client sends it back. */
  readonly messages: readonly unknown[];
  readonly finishReason?: string;
  readonly usage?: TokenUsage;
  readonly tokens?: ReplyTokens;
}

/** Puts streamed events together. */
export interface Accumulator {
  /** `data` is the parsed event, or undefined if it is no JSON. True: this event is the last one. */
  push(type: string, data: unknown, text: string): boolean;
  /** What has come so far; `complete` says whether the stream ended as its format demands. */
  finish(): { readonly reply: ReplyFacts; readonly complete: boolean };
}

export interface Dialect {
  readonly name: DialectName;
  /** Where clients send such requests. */
  readonly path: `/v1/${string}`;
  readonly vendor: Vendor;
  /** How OpenTelemetry calls a call of this format (`gen_ai.operation.name`). */
  readonly operation: "chat" | "text_completion";
  /** The parameters that shape a draw; the others are not recorded as sampling. */
  readonly samplingFields: readonly string[];
  /** The words with which replies say why they end. A word that is not here counts as `other`. */
  readonly finishWords: Readonly<Record<FinishKind, readonly string[]>>;
  /** What several messages in one reply are: choices, of which the client takes one, or the parts of one answer. */
  readonly replyMessages: "choices" | "parts";
  /** Undefined if the body is not a request of this format. */
  readRequest(body: JsonObject): RequestFacts | undefined;
  readReply(body: JsonObject): ReplyFacts;
  /** What a reply says it used. */
  readUsage(body: JsonObject): TokenUsage | undefined;
  accumulate(): Accumulator;
  /** Whether a message of a reply asks for a tool: the conversation is not over. */
  wantsTools(message: unknown): boolean;
  /** What a request must ask for, so that such a server gives token ids; nothing where it cannot. */
  tokenFields(server: TokenServer, stream: boolean): JsonObject;
  /** How this format says that something went wrong. */
  errorBody(error: { status: number; code: string; message: string }): JsonObject;
}

/** Sampling parameters that inference servers take in every format. */
export const COMMON_SAMPLING: readonly string[] = [
  ...["temperature", "top_p", "top_k", "min_p", "seed", "n", "stop", "logit_bias"],
  ...["presence_penalty", "frequency_penalty", "repetition_penalty"],
];

/** What shaped the draw, as sent. */
export function samplingOf(parameters: JsonObject, { samplingFields }: Dialect): JsonObject {
  const out: JsonObject = {};
  for (const key of samplingFields)
    if (parameters[key] !== undefined && parameters[key] !== null) out[key] = parameters[key];
  return out;
}

/** The first of these fields that holds a count. */
export function limitAt(body: JsonObject, fields: readonly string[]): number | undefined {
  for (const field of fields) {
    const limit = countAt(body, field);
    if (limit !== undefined) return limit;
  }
  return undefined;
}

export function finishKind(reason: string | undefined, { finishWords }: Dialect): FinishKind {
  for (const kind of ["stop", "length", "tools"] as const)
    if (reason !== undefined && finishWords[kind].includes(reason)) return kind;
  return "other";
}

export function usageOf(
  promptTokens: number | undefined,
  completionTokens: number | undefined,
  cachedTokens: number | undefined,
): TokenUsage | undefined {
  if (promptTokens === undefined && completionTokens === undefined) return undefined;
  // A record counts up to 2^53; a sum of hostile counts may pass it.
  if (!Number.isSafeInteger((promptTokens ?? 0) + (completionTokens ?? 0))) return undefined;
  const usage = { promptTokens: promptTokens ?? 0, completionTokens: completionTokens ?? 0 };
  return cachedTokens === undefined ? usage : { ...usage, cachedTokens };
}

/** As a part of the facts. */
export function used(usage: TokenUsage | undefined): { usage?: TokenUsage } {
  return usage === undefined ? {} : { usage };
}

export function finishOf(reason: string | undefined): { finishReason?: string } {
  return reason === undefined ? {} : { finishReason: reason.slice(0, 128) };
}

export function openAiError({ status, code, message }: { status: number; code: string; message: string }) {
  const type = status === 429 ? "rate_limit_error" : status < 500 ? "invalid_request_error" : "server_error";
  return { error: { message, type, param: null, code } };
}
