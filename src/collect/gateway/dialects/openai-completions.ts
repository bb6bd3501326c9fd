/** OpenAI text completions: POST /v1/completions. A prompt is text, or token ids; a reply is text. */
import { COMMON_SAMPLING, type Dialect, finishOf, limitAt, openAiError, used } from "./dialect.ts";
import { listAt, textAt, without } from "./json.ts";
import { ChoiceStream, chatUsage, openAiChat } from "./openai-chat.ts";
import { readTokens } from "./tokens.ts";

const NOT_PARAMETERS = new Set(["model", "prompt"]);
const TOKEN_LIMITS = ["max_tokens"];

export const openAiCompletions: Dialect = {
  name: "openai-completions",
  path: "/v1/completions",
  vendor: "openai",
  operation: "text_completion",
  samplingFields: [...COMMON_SAMPLING, ...TOKEN_LIMITS],
  finishWords: openAiChat.finishWords,
  replyMessages: "choices",

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
      maxTokens: limitAt(body, TOKEN_LIMITS),
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
  wantsTools: () => false,
  // Both servers accept the same fields. `logprobs` is a number of tokens here.
  tokenFields: () => ({ return_token_ids: true, logprobs: 1 }),
  errorBody: openAiError,
};
