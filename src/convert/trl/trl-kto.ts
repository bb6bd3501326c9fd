/** Replies marked as desirable or not, for TRL's KTOTrainer. The caller sets the threshold on the reward. */
import { RollbookError } from "../../base/index.ts";
import {
  provenanceOfRollout,
  type RolloutPart,
  type RowProvenance,
  splitConversation,
  type TrainerFormat,
} from "../handover/index.ts";
import { type TrlMessage, trlMessages, trlTools } from "./trl-messages.ts";

interface TrlKtoRow extends RowProvenance {
  readonly prompt: readonly TrlMessage[];
  readonly completion: readonly TrlMessage[];
  readonly label: boolean;
  readonly tools?: string;
  readonly reward: number;
}

const CARRIED: readonly RolloutPart[] = ["conversations.forks", "conversations.tools", "reward"];

export const trlKto: TrainerFormat<TrlKtoRow> = {
  from: "rollouts",
  together: "group",
  carried: CARRIED,
  async *rows(rollouts, { batch, losses, options: { threshold } }) {
    if (threshold === undefined)
      throw new RollbookError(
        "wrong-usage",
        { option: "threshold" },
        "trl-kto needs a threshold: the least reward of a desirable completion. Add --threshold, for example --threshold 0.5.",
      );
    for await (const rollout of rollouts) {
      const { reward, excluded } = rollout;
      if (excluded !== null || reward === null) {
        losses.add(excluded === null ? "unlabelled rollouts" : "excluded rollouts");
        continue;
      }
      losses.addParts(rollout, CARRIED);
      for (const conversation of rollout.conversations) {
        const split = splitConversation(conversation);
        const [prompt, completion] = [trlMessages(split.prompt), trlMessages(split.completion)];
        if (prompt === undefined || completion === undefined || completion.length === 0) {
          losses.add(
            completion?.length === 0
              ? "conversations without a reply"
              : "conversations with broken tool calls",
          );
          continue;
        }
        yield {
          ...{ prompt, completion, label: reward >= threshold, reward },
          ...trlTools(conversation.tools),
          ...provenanceOfRollout(rollout, batch),
        };
      }
    }
  },
};
