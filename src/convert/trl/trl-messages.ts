/** Messages in the form of TRL's chat templates: the arguments of a tool call are an object, not text. Pure. */
import { isObject } from "../../base/index.ts";
import type { ChatMessage } from "../chat/index.ts";

export interface TrlMessage {
  readonly role: string;
  readonly content: string;
  readonly tool_calls?: readonly {
    readonly type: "function";
    readonly function: { readonly name: string; readonly arguments: object };
  }[];
}

/** Undefined if the arguments of a call are not a JSON object, because no template can render them. */
export function trlMessages(messages: readonly ChatMessage[]): TrlMessage[] | undefined {
  const found: TrlMessage[] = [];
  for (const { role, content, tool_calls } of messages) {
    const calls = tool_calls?.map(({ function: { name, arguments: text } }) => ({
      type: "function" as const,
      function: { name, arguments: objectOf(text) },
    }));
    if (calls?.some((call) => call.function.arguments === undefined)) return undefined;
    found.push({
      role,
      content: content ?? "",
      ...(calls === undefined ? {} : { tool_calls: calls as NonNullable<TrlMessage["tool_calls"]> }),
    });
  }
  return found;
}

/** JSON text, because the schemas of two tools have no common columns. TRL parses it. */
export function trlTools(tools: unknown): { tools?: string } {
  return Array.isArray(tools) && tools.length > 0 ? { tools: JSON.stringify(tools) } : {};
}

function objectOf(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
