/** A message of any wire format as one turn of a conversation: its role and its parts.
 *  In: a message of OpenAI chat, responses or completions, of Anthropic messages, or any other JSON. Out: a turn.
 *  Pure. Nothing is dropped: an unknown part is kept as JSON. */
import { canonicalize, isObject, type Json } from "../../base/index.ts";

export type ChatPart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "thinking"; readonly text: string }
  /** The arguments as JSON text. The model's text may be invalid JSON. */
  | {
      readonly kind: "tool-call";
      readonly id: string | null;
      readonly name: string;
      readonly arguments: string;
    }
  | {
      readonly kind: "tool-result";
      readonly id: string | null;
      readonly text: string;
      readonly failed: boolean;
    }
  /** An image, a sound or a file: its type, and the address or digest of its bytes. */
  | { readonly kind: "media"; readonly type: string; readonly source: string }
  | { readonly kind: "other"; readonly json: string };

export interface ChatTurn {
  /** system, user, assistant, tool, or the role in the message. */
  readonly role: string;
  readonly parts: readonly ChatPart[];
}

type TurnFields = Readonly<Record<string, unknown>>;

const ROLES: Readonly<Record<string, string>> = {
  developer: "system",
  prompt: "user",
  completion: "assistant",
  model: "assistant",
  function: "tool",
};

export function readTurn(message: unknown): ChatTurn {
  if (typeof message === "string") return { role: "user", parts: textPart(message) };
  if (!isObject(message)) return { role: "unknown", parts: [otherPart(message)] };
  const item = itemTurn(message);
  if (item !== undefined) return item;
  if (message.role === undefined && isObject(message.error)) return errorTurn(message.error);
  const role = typeof message.role === "string" ? (ROLES[message.role] ?? message.role) : "unknown";
  if (role === "tool") return { role, parts: [toolResult(message.tool_call_id, message.content)] };
  const parts = [
    ...thinkingOf(message),
    ...contentParts(message.content),
    ...textPart(message.refusal),
    ...list(message.tool_calls).map(toolCall),
    ...(isObject(message.function_call) ? [toolCall({ function: message.function_call })] : []),
  ];
  const isResultOnly = parts.length > 0 && parts.every(({ kind }) => kind === "tool-result");
  return { role: isResultOnly ? "tool" : role, parts };
}

/** The reply of a call that failed. */
function errorTurn(error: Record<string, unknown>): ChatTurn {
  return {
    role: "error",
    parts: typeof error.message === "string" ? textPart(error.message) : [otherPart(error)],
  };
}

/** True if both turns are equal to a model. Fields that servers add to a reply and clients omit do not count. */
export function sameTurn(a: ChatTurn, b: ChatTurn): boolean {
  return turnKey(a) === turnKey(b);
}

function turnKey({ role, parts }: ChatTurn): string {
  const said = parts.filter(({ kind }) => kind !== "thinking");
  return JSON.stringify([role, said.map((part) => (part.kind === "tool-call" ? callKey(part) : part))]);
}

function callKey(part: Extract<ChatPart, { kind: "tool-call" }>): unknown {
  try {
    return { ...part, arguments: canonicalize(JSON.parse(part.arguments) as Json) };
  } catch {
    return part;
  }
}

/** Items of OpenAI's responses API that are not messages. */
function itemTurn(message: TurnFields): ChatTurn | undefined {
  const { type } = message;
  if (type === "function_call" || type === "custom_tool_call")
    return { role: "assistant", parts: [toolCall(message)] };
  if (type === "function_call_output" || type === "custom_tool_call_output")
    return { role: "tool", parts: [toolResult(message.call_id, message.output)] };
  if (type !== "reasoning") return undefined;
  const said = [...list(message.summary), ...list(message.content)].flatMap(textOf);
  return { role: "assistant", parts: [{ kind: "thinking", text: said.join("\n") }] };
}

function thinkingOf({ reasoning_content, reasoning }: TurnFields): ChatPart[] {
  const text = [reasoning_content, reasoning].find((each) => typeof each === "string" && each !== "");
  return text === undefined ? [] : [{ kind: "thinking", text: text as string }];
}

function contentParts(content: unknown): ChatPart[] {
  if (content === null || content === undefined) return [];
  if (typeof content === "string") return textPart(content);
  return Array.isArray(content) ? content.flatMap(partOf) : [otherPart(content)];
}

function partOf(part: unknown): ChatPart[] {
  if (typeof part === "string") return textPart(part);
  if (!isObject(part)) return [otherPart(part)];
  const type = String(part.type);
  if (/(^|_)text$|^refusal$/.test(type)) return textPart(part.text ?? part.refusal);
  if (type === "thinking") return [{ kind: "thinking", text: String(part.thinking ?? "") }];
  if (type === "tool_use" || type === "server_tool_use") return [toolCall(part)];
  if (type === "tool_result" || type.endsWith("_tool_result"))
    return [toolResult(part.tool_use_id, part.content, part.is_error === true)];
  if (/image|audio|file|document|video/.test(type)) return [{ kind: "media", type, source: sourceOf(part) }];
  return [otherPart(part)];
}

function toolCall(call: unknown): ChatPart {
  const fields = isObject(call) ? (call as TurnFields) : {};
  const inner = isObject(fields.function) ? (fields.function as TurnFields) : fields;
  const given = inner.arguments ?? inner.input ?? inner.partialInput ?? {};
  return {
    kind: "tool-call",
    id: textOrNull(fields.call_id ?? fields.id),
    name: String(inner.name ?? "unnamed"),
    arguments: typeof given === "string" ? given : JSON.stringify(given),
  };
}

function toolResult(id: unknown, content: unknown, failed = false): ChatPart {
  const text =
    typeof content === "string"
      ? content
      : Array.isArray(content) && content.every((part) => textOf(part).length > 0)
        ? content.flatMap(textOf).join("\n")
        : content === undefined
          ? ""
          : JSON.stringify(content);
  return { kind: "tool-result", id: textOrNull(id), text, failed };
}

function textOf(part: unknown): string[] {
  if (typeof part === "string") return [part];
  return isObject(part) && typeof part.text === "string" ? [part.text] : [];
}

/** Location of the bytes: an address, or the digest under which the recorder stored them. Never the bytes. */
function sourceOf(part: TurnFields): string {
  const found = JSON.stringify(part).match(/sha256:[0-9a-f]{64}|https?:\/\/[^"\\\s]{1,2000}/);
  return found?.[0] ?? "inline";
}

function textPart(text: unknown): ChatPart[] {
  return typeof text === "string" && text !== "" ? [{ kind: "text", text }] : [];
}

function otherPart(value: unknown): ChatPart {
  return { kind: "other", json: JSON.stringify(value) ?? "undefined" };
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** Name of a tool in a request. OpenAI nests it, Anthropic does not, and a built-in tool has only a type. */
export function toolName(tool: unknown): string {
  const { function: nested, name, type } = isObject(tool) ? tool : {};
  return String((isObject(nested) ? nested.name : undefined) ?? name ?? type ?? "?");
}
