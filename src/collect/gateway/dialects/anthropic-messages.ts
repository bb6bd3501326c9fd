/** Anthropic messages: POST /v1/messages. A reply is one message of content blocks. */
import {
  type Accumulator,
  COMMON_SAMPLING,
  type Dialect,
  finishOf,
  limitAt,
  type TokenUsage,
  usageOf,
  used,
} from "./dialect.ts";
import {
  countAt,
  define,
  isObject,
  type JsonObject,
  listAt,
  objectAt,
  textAt,
  tryParse,
  without,
} from "./json.ts";

const NOT_PARAMETERS = new Set(["model", "messages", "system", "tools"]);
const TOKEN_LIMITS = ["max_tokens"];
const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
};

export const anthropicMessages: Dialect = {
  name: "anthropic-messages",
  path: "/v1/messages",
  vendor: "anthropic",
  operation: "chat",
  samplingFields: [...COMMON_SAMPLING, ...TOKEN_LIMITS, "stop_sequences"],
  finishWords: {
    stop: ["end_turn", "stop_sequence", "stop"],
    length: ["max_tokens", "model_context_window_exceeded", "length"],
    tools: ["tool_use"],
    other: ["refusal", "pause_turn"],
  },
  replyMessages: "choices",

  readRequest(body) {
    const model = textAt(body, "model");
    const messages = listAt(body, "messages");
    if (model === undefined || messages === undefined) return undefined;
    const { system, tools } = body;
    return {
      model,
      stream: body.stream === true,
      messages: [
        ...(system === undefined || system === null ? [] : [{ role: "system", content: system }]),
        ...messages,
      ],
      ...(tools === undefined || tools === null ? {} : { tools }),
      maxTokens: limitAt(body, TOKEN_LIMITS),
      parameters: without(body, NOT_PARAMETERS),
    };
  },

  readReply(body) {
    const content = listAt(body, "content");
    return {
      messages: content === undefined ? [] : [{ role: "assistant", content }],
      ...finishOf(textAt(body, "stop_reason")),
      ...used(anthropicUsage(body)),
    };
  },

  readUsage: anthropicUsage,
  accumulate: () => new MessageStream(),
  wantsTools: (message) =>
    (listAt(message, "content") ?? []).some((block) => isObject(block) && block.type === "tool_use"),
  tokenFields: () => ({}),

  errorBody({ status, code, message }) {
    return { type: "error", error: { type: ERROR_TYPES[status] ?? "api_error", message, code } };
  },
};

/** Tokens read from or written to the cache count as prompt tokens. */
function anthropicUsage(body: JsonObject): TokenUsage | undefined {
  const usage = objectAt(body, "usage");
  const cached = countAt(usage, "cache_read_input_tokens");
  const input = countAt(usage, "input_tokens");
  const prompt =
    input === undefined
      ? undefined
      : input + (cached ?? 0) + (countAt(usage, "cache_creation_input_tokens") ?? 0);
  return usageOf(prompt, countAt(usage, "output_tokens"), cached);
}

/** Like Object.assign, which would treat `__proto__` as the prototype. */
function mergeOwn(target: JsonObject, source: JsonObject | undefined): void {
  for (const key in source) define(target, key, source[key]);
}

class MessageStream implements Accumulator {
  readonly #blocks = new Map<number, JsonObject>();
  /** Tool input arrives as pieces of JSON text. */
  readonly #inputs = new Map<number, string>();
  readonly #message: JsonObject = {};
  readonly #usage: JsonObject = {};
  #begun = false;
  #ended = false;

  push(type: string, data: unknown): boolean {
    if (!isObject(data)) return false;
    const kind = textAt(data, "type") ?? type;
    const index = countAt(data, "index") ?? 0;
    if (kind === "message_start") {
      this.#begun = true;
      mergeOwn(this.#usage, objectAt(objectAt(data, "message"), "usage"));
    } else if (kind === "content_block_start")
      this.#blocks.set(index, { ...objectAt(data, "content_block") });
    else if (kind === "content_block_delta") this.#grow(index, objectAt(data, "delta") ?? {});
    else if (kind === "message_delta") {
      mergeOwn(this.#message, objectAt(data, "delta"));
      mergeOwn(this.#usage, objectAt(data, "usage"));
    } else if (kind === "message_stop" || kind === "error") {
      this.#ended = kind === "message_stop";
      return true;
    }
    return false;
  }

  finish() {
    const content = [...this.#blocks]
      .sort(([a], [b]) => a - b)
      .map(([index, block]) => this.#whole(index, block));
    const body = { ...this.#message, usage: this.#usage, ...(this.#begun ? { content } : {}) };
    return { reply: anthropicMessages.readReply(body), complete: this.#ended };
  }

  #grow(index: number, delta: JsonObject): void {
    const block = this.#blocks.get(index) ?? {};
    this.#blocks.set(index, block);
    const piece = textAt(delta, "partial_json");
    if (piece !== undefined) this.#inputs.set(index, (this.#inputs.get(index) ?? "") + piece);
    for (const field of ["text", "thinking", "signature"])
      if (typeof delta[field] === "string") block[field] = (textAt(block, field) ?? "") + delta[field];
    if (!isObject(delta.citation)) return;
    const citations = listAt(block, "citations") ?? [];
    citations.push(delta.citation);
    block.citations = citations;
  }

  #whole(index: number, block: JsonObject): JsonObject {
    const text = this.#inputs.get(index);
    if (text === undefined) return block;
    const input = text === "" ? {} : tryParse(text);
    return input === undefined ? { ...block, partialInput: text } : { ...block, input };
  }
}
