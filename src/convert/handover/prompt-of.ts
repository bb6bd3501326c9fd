/** The prompt of a rollout and its completion, as chat messages. Pure. */
import { isObject, type Json } from "../../base/index.ts";
import { type ChatMessage, toMessages } from "../chat/index.ts";
import type { HandedConversation, HandedRollout } from "./handed-rollout.ts";

interface SplitConversation {
  readonly prompt: readonly ChatMessage[];
  readonly completion: readonly ChatMessage[];
}

/** Splits at the model's first turn. */
export function splitConversation({ turns }: HandedConversation): SplitConversation {
  const first = turns.findIndex(({ role }) => role === "assistant");
  const at = first < 0 ? turns.length : first;
  return { prompt: toMessages(turns.slice(0, at)), completion: toMessages(turns.slice(at)) };
}

/** The recorded prompt of the task, else the first prompt of the model. Undefined if neither is known. */
export function promptOf({
  task,
  conversations,
}: HandedRollout): string | readonly ChatMessage[] | undefined {
  const { prompt } = task;
  if (typeof prompt === "string") return prompt;
  if (isMessages(prompt)) return prompt as unknown as ChatMessage[];
  const [first] = conversations;
  const asked = first === undefined ? [] : splitConversation(first).prompt;
  return asked.length === 0 ? undefined : asked;
}

/** The prompt of `promptOf`, always as messages. */
export function promptMessages(rollout: HandedRollout): readonly ChatMessage[] | undefined {
  const prompt = promptOf(rollout);
  return typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
}

/** The output of the model and its tools, as one text for people. The tokens are the exact form. */
export function responseText({ conversations }: HandedRollout): string {
  const last = conversations.at(-1);
  if (last === undefined) return "";
  return splitConversation(last)
    .completion.flatMap(({ content }) => (content === null || content === "" ? [] : [content]))
    .join("\n");
}

function isMessages(prompt: Json | undefined): boolean {
  return (
    Array.isArray(prompt) &&
    prompt.length > 0 &&
    prompt.every(
      (each) => isObject(each) && typeof each.role === "string" && typeof each.content === "string",
    )
  );
}
