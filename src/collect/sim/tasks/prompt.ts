/** The prompt of a task for models, and its context for routers. In: the visible part. Out: text. Pure: one task, one
 *  prompt. Family and difficulty are not in the visible part, so the prompt cannot contain them. */
import type { DecisionContext } from "../../../policy/index.ts";
import { TEXT_PROTOCOL, TOOLS } from "./actions.ts";
import type { VisibleTask } from "./sim-task.ts";

export interface Message {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | null;
  readonly tool_calls?: readonly import("./actions.ts").ToolCall[];
  readonly tool_call_id?: string;
}

export type Protocol = "tools" | "text";

/** Maximum number of characters shown per file. A model gets the rest with read_file. */
const SHOWN_CHARS = 4_000;

const SYSTEM =
  "You solve a task on files. Change the files you may change, run the visible tests, and submit. Hidden tests decide.";

export function openingMessages(visible: VisibleTask, protocol: Protocol): Message[] {
  const system = protocol === "tools" ? SYSTEM : `${SYSTEM}\n${TEXT_PROTOCOL}`;
  return [
    { role: "system", content: system },
    { role: "user", content: promptOf(visible) },
  ];
}

export function promptOf({ statement, files, editable }: VisibleTask): string {
  const parts = Object.keys(files)
    .sort()
    .map((path) => {
      const content = files[path]!;
      const shown = content.slice(0, SHOWN_CHARS);
      const rest =
        content.length > shown.length ? `\n… ${content.length - shown.length} characters more` : "";
      return `--- ${path}${editable.includes(path) ? " (yours to change)" : ""}\n${shown}${rest}`;
    });
  const fresh = editable.filter((path) => !Object.hasOwn(files, path));
  const empty = fresh.map((path) => `--- ${path} (yours to write)`);
  return `${statement}\n\nFiles:\n${[...parts, ...empty].join("\n")}`;
}

/** The context of a rollout's single routing decision, as the gateway reads it from the first request. */
export function routingContext(visible: VisibleTask): DecisionContext {
  return { prompt: promptOf(visible), fields: { messages: 2, tools: TOOLS.length, stream: false } };
}
