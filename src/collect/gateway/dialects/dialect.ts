/** What the gateway must know of a wire format. One file per format; all of them pure functions of parsed JSON. */
import type { Call } from "../../../contract/index.ts";
import type { JsonObject } from "./json.ts";

export type DialectName = Exclude<Call["dialect"], "other">;

export interface RequestFacts {
  readonly model: string;
  readonly stream: boolean;
  /** The conversation as sent, system prompt first. */
  readonly messages: readonly unknown[];
  readonly tools?: unknown;
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
  /** Undefined if the body is not a request of this format. */
  readRequest(body: JsonObject): RequestFacts | undefined;
  readReply(body: JsonObject): ReplyFacts;
  /** What a reply says it used. */
  readUsage(body: JsonObject): TokenUsage | undefined;
  accumulate(): Accumulator;
  /** How this format says that something went wrong. */
  errorBody(error: { status: number; code: string; message: string }): JsonObject;
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
