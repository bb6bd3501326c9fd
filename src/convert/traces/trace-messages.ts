/** Messages in OpenAI's chat form, converted from and to the flat form of trace formats. Pure. */
import { isObject, type Json } from "../../base/index.ts";
import { type ChatTurn, plainText } from "../chat/index.ts";

export interface TraceMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly TraceToolCall[];
  readonly tool_call_id?: string;
}

interface TraceToolCall {
  readonly id: string;
  readonly name: string;
  /** The text that the model wrote. */
  readonly arguments: string;
}

const ROLES: ReadonlySet<string> = new Set(["system", "user", "assistant", "tool"]);

/** A turn as messages, with one message per tool result. An unknown role becomes the user. */
export function traceMessages({ role, parts }: ChatTurn): TraceMessage[] {
  const results = parts.filter((part) => part.kind === "tool-result");
  const calls = parts.filter((part) => part.kind === "tool-call");
  const thinking = parts.flatMap((part) => (part.kind === "thinking" ? [part.text] : []));
  const text = parts.flatMap(plainText).join("\n");
  const answers = results.map(
    (part): TraceMessage => ({ role: "tool", content: part.text, tool_call_id: part.id ?? "" }),
  );
  if (role === "tool" || (text === "" && calls.length + thinking.length === 0 && answers.length > 0))
    return answers;
  return [
    ...answers,
    {
      role: ROLES.has(role) ? (role as TraceMessage["role"]) : "user",
      content: text === "" && calls.length > 0 ? null : text,
      ...(thinking.length === 0 ? {} : { reasoning_content: thinking.join("\n") }),
      ...(calls.length === 0
        ? {}
        : {
            tool_calls: calls.map((part) => ({
              id: part.id ?? "",
              name: part.name,
              arguments: part.arguments,
            })),
          }),
    },
  ];
}

/** The message in OpenAI's chat form. */
export function toOpenAi(message: TraceMessage): Json {
  const { role, content, reasoning_content, tool_calls, tool_call_id } = message;
  return {
    role,
    ...(tool_call_id === undefined ? {} : { tool_call_id }),
    content,
    ...(reasoning_content === undefined ? {} : { reasoning_content }),
    ...(tool_calls === undefined
      ? {}
      : {
          tool_calls: tool_calls.map(({ id, name, arguments: text }) => ({
            ...{ id, type: "function" },
            function: { name, arguments: text },
          })),
        }),
  };
}

/** Tools as a list of names, descriptions and schemas, in the forms of OpenAI and Anthropic. */
export function traceTools(tools: unknown): { name: string; description: string; parameters: Json }[] {
  if (!Array.isArray(tools)) return [];
  return tools.flatMap((tool: unknown) => {
    const inner = isObject(tool) && isObject(tool.function) ? tool.function : tool;
    if (!isObject(inner) || typeof inner.name !== "string") return [];
    const parameters = (inner.parameters ?? inner.input_schema ?? {}) as Json;
    return [{ name: inner.name, description: String(inner.description ?? ""), parameters }];
  });
}
