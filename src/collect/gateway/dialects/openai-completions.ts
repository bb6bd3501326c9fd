/** OpenAI text completions: POST /v1/completions. A prompt is text, or token ids; a reply is text. */
import { type Dialect, finishOf, openAiError, used } from "./dialect.ts";
import { listAt, textAt, without } from "./json.ts";
import { ChoiceStream, chatUsage } from "./openai-chat.ts";
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
  accumulate: () => new ChoiceStream(openAiCompletions),
  errorBody: openAiError,
};
