/** Simulated models behind the API of OpenAI's chat completions. In: tasks and declared models. Out: a function from a
 *  request to a response, for a gateway in this process, or an HTTP server on loopback. A model recognizes a task by
 *  its prompt, or by its statement if an agent words the prompt itself. An unknown task gets a 404. Keeps no state. */
import { RollbookError } from "../../../base/index.ts";
import { promptOf, type SimTask } from "../tasks/index.ts";
import { replyTo, type SimModel } from "../world/index.ts";
import { chatCompletion, chatStream, readChat, refuse } from "./chat-wire.ts";

export type ModelHandler = (request: Request) => Promise<Response>;

export function simulatedModels(tasks: readonly SimTask[], models: readonly SimModel[]): ModelHandler {
  const find = recogniser(tasks);
  const byName = new Map(models.map((model) => [model.name, model]));
  return async (request) => {
    const chat = await readChat(request, [...byName.keys()]);
    if (chat instanceof Response) return chat;
    const model = byName.get(chat.model);
    if (model === undefined)
      return refuse(
        404,
        "model_not_found",
        `no simulated model is called ${chat.model}; there are ${[...byName.keys()].join(", ")}.`,
      );
    const user = chat.messages.find(({ role }) => role === "user")?.content ?? "";
    const task = find(user);
    if (task === undefined)
      return refuse(
        404,
        "unknown_task",
        "no simulated model knows this task: its prompt is of none of the tasks they were given.",
      );
    const reply = replyTo(task, model, { ...chat, protocol: chat.hasTools ? "tools" : "text" });
    return chat.stream ? chatStream(chat, reply) : chatCompletion(chat, reply);
  };
}

/** Matches the whole prompt, else the longest statement that the prompt contains. */
function recogniser(tasks: readonly SimTask[]): (user: string) => SimTask | undefined {
  const byPrompt = new Map<string, SimTask>();
  for (const task of tasks) {
    const prompt = promptOf(task.visible);
    const other = byPrompt.get(prompt);
    if (other !== undefined && other.digest !== task.digest)
      throw new RollbookError(
        "ambiguous-task",
        { tasks: [other.id, task.id] },
        `the tasks ${other.id} and ${task.id} look the same to a model. Leave one of them out.`,
      );
    byPrompt.set(prompt, task);
  }
  const longestFirst = [...tasks].sort((a, b) => b.visible.statement.length - a.visible.statement.length);
  return (user) => byPrompt.get(user) ?? longestFirst.find(({ visible }) => user.includes(visible.statement));
}
