/** Small questions about requests and replies that do not depend on the wire format. Pure. */
import { isObject, type JsonObject, listAt } from "../dialects/index.ts";

/** Whether the model asks for a tool: the conversation is not over. */
export function wantsTools(message: unknown): boolean {
  if (!isObject(message)) return false;
  if (message.type === "function_call" || message.type === "custom_tool_call") return true;
  if ((listAt(message, "tool_calls") ?? []).length > 0 || isObject(message.function_call)) return true;
  return (listAt(message, "content") ?? []).some((block) => isObject(block) && block.type === "tool_use");
}

const SAMPLING = [
  ...["temperature", "top_p", "top_k", "min_p", "seed", "n", "stop", "logit_bias"],
  ...["presence_penalty", "frequency_penalty", "repetition_penalty"],
  ...["max_tokens", "max_completion_tokens", "max_output_tokens", "stop_sequences"],
];

/** What shaped the draw, as sent. */
export function samplingOf(parameters: JsonObject): JsonObject {
  const out: JsonObject = {};
  for (const key of SAMPLING)
    if (parameters[key] !== undefined && parameters[key] !== null) out[key] = parameters[key];
  return out;
}

export type FinishKind = "stop" | "length" | "tools" | "other";

/** The end of a reply, in one vocabulary. */
export function finishKind(reason: string | undefined): FinishKind {
  switch (reason) {
    case "stop":
    case "end_turn":
    case "stop_sequence":
    case "completed":
      return "stop";
    case "length":
    case "max_tokens":
    case "max_output_tokens":
    case "model_context_window_exceeded":
      return "length";
    case "tool_calls":
    case "tool_use":
    case "function_call":
      return "tools";
    default:
      return "other";
  }
}
