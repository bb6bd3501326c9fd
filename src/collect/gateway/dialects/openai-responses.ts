/** OpenAI responses: POST /v1/responses. The input is text or a list of items; the output is a list of items. */
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

const NOT_PARAMETERS = new Set(["model", "input", "instructions", "tools"]);
const TOKEN_LIMITS = ["max_output_tokens"];
const LAST = new Set(["response.completed", "response.incomplete", "response.failed", "error"]);

export const openAiResponses: Dialect = {
  name: "openai-responses",
  path: "/v1/responses",
  vendor: "openai",
  operation: "chat",
  samplingFields: [...COMMON_SAMPLING, ...TOKEN_LIMITS],
  // A reply that asks for a tool also has the status `completed`; its items show the tool call.
  finishWords: {
    stop: ["completed"],
    length: ["max_output_tokens", "max_tokens"],
    tools: [],
    other: ["content_filter", "failed", "cancelled", "incomplete", "in_progress", "queued"],
  },
  replyMessages: "parts",

  readRequest(body) {
    const model = textAt(body, "model");
    if (model === undefined) return undefined;
    const { input, instructions, tools } = body;
    const items = typeof input === "string" ? [{ role: "user", content: input }] : listAt(body, "input");
    return {
      model,
      stream: body.stream === true,
      messages: [
        ...(typeof instructions === "string" ? [{ role: "system", content: instructions }] : []),
        ...(items ?? []),
      ],
      ...(tools === undefined || tools === null ? {} : { tools }),
      maxTokens: limitAt(body, TOKEN_LIMITS),
      parameters: without(body, NOT_PARAMETERS),
    };
  },

  readReply(body) {
    const incomplete = textAt(objectAt(body, "incomplete_details"), "reason");
    return {
      messages: listAt(body, "output") ?? [],
      ...finishOf(incomplete ?? textAt(body, "status")),
      ...used(responsesUsage(body)),
    };
  },

  readUsage: responsesUsage,
  accumulate: () => new ResponseStream(),
  wantsTools: (item) => isObject(item) && (item.type === "function_call" || item.type === "custom_tool_call"),
  tokenFields: () => ({}),
  errorBody: openAiError,
};

function responsesUsage(body: JsonObject): TokenUsage | undefined {
  const usage = objectAt(body, "usage");
  return usageOf(
    countAt(usage, "input_tokens"),
    countAt(usage, "output_tokens"),
    countAt(objectAt(usage, "input_tokens_details"), "cached_tokens"),
  );
}

/** The last event carries the whole response. If it never arrives, the finished items are the reply. */
class ResponseStream implements Accumulator {
  readonly #items = new Map<number, unknown>();
  #whole: JsonObject | undefined;
  #ended = false;

  push(type: string, data: unknown): boolean {
    if (!isObject(data)) return false;
    const kind = textAt(data, "type") ?? type;
    if (kind === "response.output_item.done" && isObject(data.item))
      this.#items.set(countAt(data, "output_index") ?? this.#items.size, data.item);
    if (!LAST.has(kind)) return false;
    this.#whole = objectAt(data, "response");
    this.#ended = true;
    return true;
  }

  finish() {
    const output = [...this.#items].sort(([a], [b]) => a - b).map(([, item]) => item);
    return { reply: openAiResponses.readReply(this.#whole ?? { output }), complete: this.#ended };
  }
}
