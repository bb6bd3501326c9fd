/** A task for an agent. Its digest is its identity: one id with two digests means two tasks. */
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

/** Usual payload names for the question of a task. */
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

/** Title of a task for people (the id of a launched task is a digest). Sources, in order: a name, title or id in the
 *  payload; the beginning of the prompt; the question in the payload. The question is the text under a usual name, else
 *  the first text of several words, else the first text. The record need not be validated. */
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

/** Text of a prompt, or of its last message. */
function askedIn(prompt: unknown): string | undefined {
  const last = Array.isArray(prompt) ? prompt.at(-1) : prompt;
  const content = isPlain(last) ? (last.content ?? last.text) : last;
  return textsIn(content)[0];
}

/** Levels to search for text; deeper text is data. */
const MOST_LEVELS = 4;

/** Texts in document order, including those of nested values. */
function textsIn(value: unknown, levels = MOST_LEVELS): string[] {
  if (typeof value === "string") return value.trim() === "" ? [] : [value.trim()];
  if (levels === 0 || typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap((each) => textsIn(each, levels - 1));
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
