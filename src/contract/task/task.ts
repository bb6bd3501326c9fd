/** What an agent is asked to do. Its digest is its identity: two tasks with one id and two digests are two tasks. */
import * as z from "zod";
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

/** Names under which a payload holds what is asked. */
const ASKED = [
  ...[
    "question",
    "prompt",
    "messages",
    "instruction",
    "instructions",
    "task",
    "problem",
    "query",
    "input",
    "text",
  ],
] as const;

/** What people call a task (a launched one has a digest for an id): a name, title or id in its payload, else the beginning
 *  of its prompt, else of what its payload asks: under a usual name, else the first text of several words, else the first
 *  text. The record need not have been checked. */
export function taskTitle({ payload, prompt }: Pick<Partial<Task>, "payload" | "prompt">): string | null {
  const fields = (payload ?? {}) as Record<string, unknown>;
  const { name, title, id: own } = fields;
  const texts = textsIn(fields);
  const words = [
    ...[name, title, typeof own === "number" ? String(own) : own],
    ...[prompt, ...ASKED.map((key) => fields[key])].map(askedIn),
    ...[texts.find((each) => each.includes(" ")), texts[0]],
  ].find((each) => typeof each === "string" && each.trim() !== "");
  return words === undefined ? null : (words as string).trim().slice(0, 80);
}

/** The text of a prompt, or of the last message of one. */
function askedIn(prompt: unknown): string | undefined {
  const last = Array.isArray(prompt) ? prompt.at(-1) : prompt;
  const content = isPlain(last) ? (last.content ?? last.text) : last;
  return textsIn(content)[0];
}

/** Levels that are looked into: deeper text is data. */
const MOST_LEVELS = 4;

/** Texts in the order in which they stand, those of nested values included. */
function textsIn(value: unknown, levels = MOST_LEVELS): string[] {
  if (typeof value === "string") return value.trim() === "" ? [] : [value.trim()];
  if (levels === 0 || typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap((each) => textsIn(each, levels - 1));
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
