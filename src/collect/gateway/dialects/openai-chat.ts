/** OpenAI chat completions: POST /v1/chat/completions. Also spoken by vLLM, SGLang, llama.cpp, Ollama and most others. */
import {
  type Accumulator,
  type Dialect,
  finishOf,
  openAiError,
  type TokenUsage,
  usageOf,
  used,
} from "./dialect.ts";
import { countAt, isObject, type JsonObject, listAt, objectAt, textAt, without } from "./json.ts";
import { mergeDelta } from "./merge-delta.ts";
import { readTokens } from "./tokens.ts";

const NOT_PARAMETERS = new Set(["model", "messages", "tools"]);

export const openAiChat: Dialect = {
  name: "openai-chat",

  readRequest(body) {
    const model = textAt(body, "model");
    const messages = listAt(body, "messages");
    if (model === undefined || messages === undefined) return undefined;
    return {
      model,
      stream: body.stream === true,
      messages,
      ...(body.tools === undefined || body.tools === null ? {} : { tools: body.tools }),
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
  accumulate: () => new ChatStream(),
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

/** Chunks carry deltas by choice; `[DONE]` ends the stream. */
class ChatStream implements Accumulator {
  readonly #choices = new Map<number, JsonObject>();
  readonly #outside: JsonObject = {};
  #done = false;

  push(_type: string, data: unknown, text: string): boolean {
    if (text === "[DONE]") {
      this.#done = true;
      return true;
    }
    if (!isObject(data)) return false;
    for (const [i, choice] of (listAt(data, "choices") ?? []).entries())
      if (isObject(choice)) this.#addChoice(countAt(choice, "index") ?? i, choice);
    // The prompt comes once, with the first chunk; usage with the last.
    if (Array.isArray(data.prompt_token_ids)) this.#outside.prompt_token_ids = data.prompt_token_ids;
    if (isObject(data.usage)) this.#outside.usage = data.usage;
    if (isObject(data.meta_info)) this.#outside.meta_info = data.meta_info;
    return false;
  }

  finish() {
    const ordered = [...this.#choices].sort(([a], [b]) => a - b).map(([, choice]) => choice);
    for (const choice of ordered) {
      const message = objectAt(choice, "message");
      for (const call of listAt(message, "tool_calls") ?? []) if (isObject(call)) delete call.index;
    }
    const reply = openAiChat.readReply({ ...this.#outside, choices: ordered });
    return { reply, complete: this.#done };
  }

  #addChoice(index: number, choice: JsonObject): void {
    const { delta, ...rest } = choice;
    let known = this.#choices.get(index);
    if (known === undefined) {
      known = { message: {} };
      this.#choices.set(index, known);
    }
    if (isObject(delta)) mergeDelta(known.message as JsonObject, delta);
    mergeDelta(known, rest);
  }
}
