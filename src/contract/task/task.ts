/** What an agent is asked to do. Its digest is its identity: two tasks with one id and two digests are two tasks. */
import { z } from "zod";
import { dataSource, defineRecord, id, json, jsonObject, type RecordOf, text } from "../codec/index.ts";
import { environmentKey } from "./environment.ts";

export const Task = defineRecord({
  kind: "rollbook.task.v1",
  summary: "One task: environment, payload handed to the agent verbatim, and the label only the reward sees.",
  shape: {
    id,
    environment: environmentKey,
    payload: jsonObject,
    prompt: z.optional(json),
    label: z.optional(json),
    split: z.optional(text(64)),
    dataSource,
  },
});
export type Task = RecordOf<typeof Task>;

/** What people call a task (a launched one has a digest for an id): a name, title or id in its payload, else the beginning
 *  of its prompt, else of the first text in its payload. The record need not have been checked. */
export function taskTitle({ payload, prompt }: Pick<Partial<Task>, "payload" | "prompt">): string | null {
  const fields = (payload ?? {}) as Record<string, unknown>;
  const { name, title, id, question } = fields;
  const number = typeof id === "number" ? String(id) : id;
  const words = [name, title, number, askedIn(prompt), question, ...Object.values(fields)].find(
    (each) => typeof each === "string" && each.trim() !== "",
  );
  return words === undefined ? null : (words as string).trim().slice(0, 80);
}

/** The text of a prompt, or of the last message of one. */
function askedIn(prompt: unknown): unknown {
  if (!Array.isArray(prompt)) return prompt;
  return (prompt.at(-1) as { content?: unknown } | null | undefined)?.content;
}
