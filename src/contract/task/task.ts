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
