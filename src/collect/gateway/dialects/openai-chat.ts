/** OpenAI chat completions: POST /v1/chat/completions. Also spoken by vLLM, SGLang, llama.cpp, Ollama and most other
 *  servers. */
import {
  type Accumulator,
  COMMON_SAMPLING,
  type Dialect,
  finishOf,
  limitAt,
  openAiError,
  type TokenUsage,
  usageOf,
  used,
} from "./dialect.ts";
import { countAt, isObject, type JsonObject, listAt, objectAt, textAt, without } from "./json.ts";
import { mergeDelta } from "./merge-delta.ts";
import { readTokens } from "./tokens.ts";

const NOT_PARAMETERS = new Set(["model", "messages", "tools"]);
/** The newer name comes first: it counts if a client sends both. */
const TOKEN_LIMITS = ["max_completion_tokens", "max_tokens"];
/** Fields for SGLang versions before `return_token_ids`. They return prompt ids, and ids with logprobs. */
const OLDER_SGLANG = { return_prompt_token_ids: true, return_meta_info: true };

export const openAiChat: Dialect = {
  name: "openai-chat",
  path: "/v1/chat/completions",
  vendor: "openai",
  operation: "chat",
  samplingFields: [...COMMON_SAMPLING, ...TOKEN_LIMITS],
  // Many servers speak this format; some have their own finish reasons.
  finishWords: {
    stop: ["stop", "eos_token", "stop_sequence", "end_turn"],
    length: ["length", "max_tokens", "model_length"],
    tools: ["tool_calls", "function_call"],
    other: ["content_filter"],
  },
  replyMessages: "choices",

  readRequest(body) {
    const model = textAt(body, "model");
    const messages = listAt(body, "messages");
    if (model === undefined || messages === undefined) return undefined;
    return {
      model,
      stream: body.stream === true,
      messages,
      ...(body.tools === undefined || body.tools === null ? {} : { tools: body.tools }),
      maxTokens: limitAt(body, TOKEN_LIMITS),
      parameters: without(body, NOT_PARAMETERS),
    };
  },

  readReply(body) {
    const choices = listAt(body, "choices") ?? [];
    return {
      messages: choices.flatMap((choice) => objectAt(choice, "message") ?? []),
      ...finishOf(textAt(choices[0], "finish_reason")),
      ...used(chatUsage(body)),
      ...readTokens(body, choices),
    };
  },

  readUsage: chatUsage,
  accumulate: () => new ChoiceStream(openAiChat),
  wantsTools: (message) =>
    (listAt(message, "tool_calls") ?? []).length > 0 || objectAt(message, "function_call") !== undefined,

  tokenFields(server, stream) {
    switch (server) {
      case "vllm":
        return { return_token_ids: true, logprobs: true };
      case "sglang":
        // SGLang refuses to stream a chat with token ids, so such a stream is recorded without ids.
        return stream ? {} : { return_token_ids: true, ...OLDER_SGLANG, logprobs: true };
      default:
        return server satisfies never;
    }
  },

  errorBody: openAiError,
};

export function chatUsage(body: JsonObject): TokenUsage | undefined {
  const usage = objectAt(body, "usage");
  return usageOf(
    countAt(usage, "prompt_tokens"),
    countAt(usage, "completion_tokens"),
    countAt(objectAt(usage, "prompt_tokens_details"), "cached_tokens"),
  );
}

/** Limit of choices in a record. One more choice is kept, to show that there were too many. */
const MOST_CHOICES = 1024;

/** Assembles the chunks of OpenAI's two older formats: choices by index; `[DONE]` ends the stream. */
export class ChoiceStream implements Accumulator {
  readonly #dialect: Dialect;
  readonly #choices = new Map<number, JsonObject>();
  readonly #outside: JsonObject = {};
  #done = false;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  push(_type: string, data: unknown, text: string): boolean {
    if (text === "[DONE]") {
      this.#done = true;
      return true;
    }
    if (!isObject(data)) return false;
    for (const [i, choice] of (listAt(data, "choices") ?? []).entries())
      if (isObject(choice)) this.#addChoice(countAt(choice, "index") ?? i, choice);
    // The prompt ids come once, with the first chunk; usage comes with the last chunk.
    if (Array.isArray(data.prompt_token_ids)) this.#outside.prompt_token_ids = data.prompt_token_ids;
    if (isObject(data.usage)) this.#outside.usage = data.usage;
    // SGLang puts `meta_info` beside the choices of a chat.
    if (this.#dialect === openAiChat && isObject(data.meta_info)) this.#outside.meta_info = data.meta_info;
    return false;
  }

  finish() {
    const choices = [...this.#choices].sort(([a], [b]) => a - b).map(([, choice]) => choice);
    for (const choice of choices) {
      const message = objectAt(choice, "message");
      for (const call of listAt(message, "tool_calls") ?? []) if (isObject(call)) delete call.index;
    }
    return { reply: this.#dialect.readReply({ ...this.#outside, choices }), complete: this.#done };
  }

  /** A chat has its message in deltas; a completion has its text in the choice itself. */
  #addChoice(index: number, choice: JsonObject): void {
    const { delta, ...rest } = choice;
    const known = this.#choices.get(index) ?? { message: {} };
    if (this.#choices.size > MOST_CHOICES && !this.#choices.has(index)) return;
    this.#choices.set(index, known);
    if (isObject(delta)) mergeDelta(known.message as JsonObject, delta);
    mergeDelta(known, rest);
  }
}
