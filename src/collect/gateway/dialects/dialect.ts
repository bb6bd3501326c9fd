/** The interface of a wire format. One file per format holds its paths, fields and vocabulary. In: parsed JSON. Out:
 *  facts of requests and replies. All functions are pure. */
import type { Call } from "../../../contract/index.ts";
import { countAt, type JsonObject } from "./json.ts";

export type DialectName = Exclude<Call["dialect"], "other">;

/** Vendors of the wire formats. An upstream speaks the formats of one vendor, or of all. */
export const VENDORS = ["openai", "anthropic"] as const;
export type Vendor = (typeof VENDORS)[number];

/** The end of a reply, in one vocabulary for all formats. */
export type FinishKind = "stop" | "length" | "tools" | "other";

/** Inference servers that return exact token ids on request. */
type TokenServer = "vllm" | "sglang";

export interface RequestFacts {
  readonly model: string;
  readonly stream: boolean;
  /** The conversation as sent, system prompt first. */
  readonly messages: readonly unknown[];
  readonly tools?: unknown;
  /** Maximum number of reply tokens, if the request sets one. */
  readonly maxTokens: number | undefined;
  /** All other fields of the body. */
  readonly parameters: JsonObject;
}

export interface TokenUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens?: number;
}

/** Exact tokens, if the upstream returns them: one prompt, one sample per choice. */
export interface ReplyTokens {
  readonly prompt: readonly number[];
  readonly samples: readonly { readonly ids: readonly number[]; readonly logprobs: readonly number[] }[];
}

export interface ReplyFacts {
  /** The model's messages, in the form in which a client sends them back. */
  readonly messages: readonly unknown[];
  readonly finishReason?: string;
  readonly usage?: TokenUsage;
  readonly tokens?: ReplyTokens;
}

/** Assembles a reply from streamed events. */
export interface Accumulator {
  /** `data` is the parsed event, or undefined if it is not JSON. Returns true for the last event. */
  push(type: string, data: unknown, text: string): boolean;
  /** The reply so far. `complete` is true if the stream ended as its format demands. */
  finish(): { readonly reply: ReplyFacts; readonly complete: boolean };
}

export interface Dialect {
  readonly name: DialectName;
  /** Path to which clients send such requests. */
  readonly path: `/v1/${string}`;
  readonly vendor: Vendor;
  /** OpenTelemetry name of a call in this format (`gen_ai.operation.name`). */
  readonly operation: "chat" | "text_completion";
  /** Parameters that shape sampling. Other parameters are not recorded as sampling. */
  readonly samplingFields: readonly string[];
  /** Finish reasons in the words of this format. An unlisted word counts as `other`. */
  readonly finishWords: Readonly<Record<FinishKind, readonly string[]>>;
  /** Meaning of several messages in one reply: alternative choices, or the parts of one answer. */
  readonly replyMessages: "choices" | "parts";
  /** Undefined if the body is not a request of this format. */
  readRequest(body: JsonObject): RequestFacts | undefined;
  readReply(body: JsonObject): ReplyFacts;
  /** The usage that a reply reports. */
  readUsage(body: JsonObject): TokenUsage | undefined;
  accumulate(): Accumulator;
  /** True if a reply message asks for a tool, so the conversation continues. */
  wantsTools(message: unknown): boolean;
  /** Request fields that make the server return token ids. Empty if the server cannot. */
  tokenFields(server: TokenServer, stream: boolean): JsonObject;
  /** An error in this format. */
  errorBody(error: { status: number; code: string; message: string }): JsonObject;
}

/** Names the fields for which `readRequest` does not read the body. */
export function requestFaults({ readRequest }: Pick<Dialect, "readRequest">, body: JsonObject): string {
  const lacking = [
    ...(typeof body.model === "string" ? [] : [{ field: "model", wanted: "text" }]),
    ...(readRequest({ ...body, model: "" }) === undefined ? [{ field: "messages", wanted: "a list" }] : []),
  ];
  const told = lacking.map(({ field, wanted }) =>
    body[field] === undefined ? `${field} is missing` : `${field} is not ${wanted}`,
  );
  return told.join(", and ");
}

/** Sampling parameters that inference servers accept in every format. */
export const COMMON_SAMPLING: readonly string[] = [
  ...["temperature", "top_p", "top_k", "min_p", "seed", "n", "stop", "logit_bias"],
  ...["presence_penalty", "frequency_penalty", "repetition_penalty"],
];

/** The sampling parameters as sent. */
export function samplingOf(parameters: JsonObject, { samplingFields }: Dialect): JsonObject {
  const out: JsonObject = {};
  for (const key of samplingFields)
    if (parameters[key] !== undefined && parameters[key] !== null) out[key] = parameters[key];
  return out;
}

/** Value of the first of these fields that holds a count. */
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
  // Records count up to 2^53. A sum of hostile counts may exceed that.
  if (!Number.isSafeInteger((promptTokens ?? 0) + (completionTokens ?? 0))) return undefined;
  const usage = { promptTokens: promptTokens ?? 0, completionTokens: completionTokens ?? 0 };
  return cachedTokens === undefined ? usage : { ...usage, cachedTokens };
}

/** The usage as a partial ReplyFacts. */
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
