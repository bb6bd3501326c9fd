/** The actions of an agent in a task, and their encoding: tool calls, or plain text for models without tools.
 *  In: a reply of a model. Out: actions. Pure. An invalid reply becomes an action that will be refused, so that the
 *  model gets the reason. Never throws. */

export type Action =
  | { readonly kind: "look" }
  | { readonly kind: "read"; readonly path: string }
  | { readonly kind: "write"; readonly path: string; readonly content: string }
  | { readonly kind: "test" }
  | { readonly kind: "submit" }
  | { readonly kind: "invalid"; readonly problem: string };

export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

const path = { type: "string", description: "a path as it is listed" };

/** In the format of OpenAI's chat completions. */
export const TOOLS = [
  tool("list_files", "List the files of the task.", {}),
  tool("read_file", "Read one file.", { path }),
  tool("write_file", "Replace one of the files you may change.", { path, content: { type: "string" } }),
  tool("run_tests", "Run the visible tests over your files.", {}),
  tool("submit", "Hand in your files. Ends the task.", {}),
] as const;

/** For models without tools: one action per line. File content stands between <<< and >>>. */
export const TEXT_PROTOCOL = `Answer with one or more actions, each on a line of its own:
ACTION list_files
ACTION read_file <path>
ACTION write_file <path>
<<<
the whole new content
>>>
ACTION run_tests
ACTION submit`;

export function actionOfCall({ function: { name, arguments: text } }: ToolCall): Action {
  let given: Record<string, unknown>;
  try {
    given = (text.trim() === "" ? {} : JSON.parse(text)) as Record<string, unknown>;
  } catch {
    return { kind: "invalid", problem: `the arguments of ${name} are not JSON` };
  }
  if (typeof given !== "object" || given === null)
    return { kind: "invalid", problem: `the arguments of ${name} are no object` };
  return actionOf(name, given);
}

/** Undefined if the text holds no action. */
export function actionsInText(text: string): Action[] | undefined {
  const lines = text.split("\n");
  const actions: Action[] = [];
  for (let at = 0; at < lines.length; at++) {
    const [, name, rest] = /^ACTION\s+(\S+)\s*(.*?)\s*$/.exec(lines[at]!) ?? [];
    if (name === undefined) continue;
    const opens = name === "write_file" && lines[at + 1]?.trim() === "<<<";
    const close = opens ? lines.findIndex((line, i) => i > at + 1 && line.trim() === ">>>") : -1;
    if (name !== "write_file") actions.push(actionOf(name, { path: rest }));
    else if (close < 0)
      actions.push({ kind: "invalid", problem: `write_file ${rest} has no content between <<< and >>>` });
    else {
      actions.push(actionOf(name, { path: rest, content: `${lines.slice(at + 2, close).join("\n")}\n` }));
      at = close;
    }
  }
  return actions.length === 0 ? undefined : actions;
}

/** Formats an action for a model without tools. */
export function textOfAction(name: string, given: { path?: string; content?: string }): string {
  const head = given.path === undefined ? `ACTION ${name}` : `ACTION ${name} ${given.path}`;
  return given.content === undefined ? head : `${head}\n<<<\n${given.content.replace(/\n$/, "")}\n>>>`;
}

function actionOf(name: string, { path, content }: Record<string, unknown>): Action {
  switch (name) {
    case "list_files":
      return { kind: "look" };
    case "run_tests":
      return { kind: "test" };
    case "submit":
      return { kind: "submit" };
    case "read_file":
      return typeof path === "string" ? { kind: "read", path } : missing(name, "path");
    case "write_file":
      if (typeof path !== "string") return missing(name, "path");
      return typeof content === "string" ? { kind: "write", path, content } : missing(name, "content");
    default: {
      const known = TOOLS.map((each) => each.function.name).join(", ");
      return { kind: "invalid", problem: `there is no ${name}; there are ${known}` };
    }
  }
}

function missing(name: string, field: string): Action {
  return { kind: "invalid", problem: `${name} needs ${field}` };
}

function tool(name: string, description: string, properties: Record<string, object>) {
  const parameters = {
    type: "object",
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
  return { type: "function" as const, function: { name, description, parameters } };
}
