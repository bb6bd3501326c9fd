/** OpenAI text completions: POST /v1/completions. A prompt is text, or token ids; a reply is text. */
import { type Accumulator, type Dialect, finishOf, openAiError, used } from "./dialect.ts";
import { countAt, isObject, type JsonObject, listAt, textAt, without } from "./json.ts";
import { mergeDelta } from "./merge-delta.ts";
import { chatUsage } from "./openai-chat.ts";
import { readTokens } from "./tokens.ts";

const NOT_PARAMETERS = new Set(["model", "prompt"]);

export const openAiCompletions: Dialect = {
  name: "openai-completions",

  readRequest(body) {
    const model = textAt(body, "model");
    if (model === undefined) return undefined;
    const prompts =
      Array.isArray(body.prompt) && typeof body.prompt[0] !== "number"
        ? (body.prompt as unknown[])
        : [body.prompt ?? ""];
    return {
      model,
      stream: body.stream === true,
      messages: prompts.map((prompt) => ({ role: "prompt", content: prompt })),
      parameters: without(body, NOT_PARAMETERS),
    };
  },

  readReply(body) {
    const choices = listAt(body, "choices") ?? [];
    return {
      messages: choices.map((choice) => ({ role: "completion", content: textAt(choice, "text") ?? "" })),
      ...finishOf(textAt(choices[0], "finish_reason")),
      ...used(chatUsage(body)),
      ...readTokens(body, choices),
    };
  },

  readUsage: chatUsage,
  accumulate: () => new CompletionStream(),
  errorBody: openAiError,
};

class CompletionStream implements Accumulator {
  readonly #choices = new Map<number, JsonObject>();
  readonly #outside: JsonObject = {};
  #done = false;

  push(_type: string, data: unknown, text: string): boolean {
    if (text === "[DONE]") {
      this.#done = true;
      return true;
    }
    if (!isObject(data)) return false;
    for (const [i, choice] of (listAt(data, "choices") ?? []).entries()) {
      if (!isObject(choice)) continue;
      const index = countAt(choice, "index") ?? i;
      const known = this.#choices.get(index) ?? {};
      this.#choices.set(index, known);
      mergeDelta(known, choice);
    }
    if (isObject(data.usage)) this.#outside.usage = data.usage;
    if (Array.isArray(data.prompt_token_ids)) this.#outside.prompt_token_ids = data.prompt_token_ids;
    return false;
  }

  finish() {
    const choices = [...this.#choices].sort(([a], [b]) => a - b).map(([, choice]) => choice);
    return { reply: openAiCompletions.readReply({ ...this.#outside, choices }), complete: this.#done };
  }
}
