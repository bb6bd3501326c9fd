/** Conversations that end with a reply, for TRL's SFTTrainer: `messages` and, as text, `tools`. */
import { sftRow } from "../chat/index.ts";
import {
  provenanceOfRollout,
  type RolloutPart,
  type RowProvenance,
  type TrainerFormat,
  toExported,
} from "../handover/index.ts";
import { type TrlMessage, trlMessages, trlTools } from "./trl-messages.ts";

interface TrlSftRow extends RowProvenance {
  readonly messages: readonly TrlMessage[];
  readonly tools?: string;
  readonly model: string;
  readonly reward: number | null;
}

const CARRIED: readonly RolloutPart[] = ["conversations.forks", "conversations.tools", "reward"];

export const trlSft: TrainerFormat<TrlSftRow> = {
  from: "rollouts",
  together: "group",
  carried: CARRIED,
  async *rows(rollouts, { batch, losses }) {
    for await (const rollout of rollouts) {
      if (rollout.excluded !== null) {
        losses.add("excluded rollouts");
        continue;
      }
      losses.addParts(rollout, CARRIED);
      for (const conversation of rollout.conversations) {
        const row = sftRow(toExported(rollout, conversation));
        const messages = row === undefined ? undefined : trlMessages(row.messages);
        if (row === undefined || messages === undefined) {
          losses.add(
            row === undefined ? "conversations without a reply" : "conversations with broken tool calls",
          );
          continue;
        }
        yield {
          messages,
          ...trlTools(row.tools),
          ...{ model: row.model, reward: row.reward },
          ...provenanceOfRollout(rollout, batch),
        };
      }
    }
  },
};
