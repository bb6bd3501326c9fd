/** Converts a conversation to the form of the chat exports. Pure. */
import type { ExportedConversation } from "../chat/index.ts";
import type { HandedConversation, HandedRollout } from "./handed-rollout.ts";

export function toExported(rollout: HandedRollout, conversation: HandedConversation): ExportedConversation {
  const { record, task, reward } = rollout;
  const { rolloutId, group = null } = record;
  return { rolloutId, task: task.id, group, reward, ...conversation };
}
