/** Pairs of a better and a worse reply to one prompt, for TRL's DPOTrainer: the best and the worst reply per prompt. */
import { pairRows } from "../chat/index.ts";
import { inGroups, type RolloutPart, type TrainerFormat, toExported } from "../handover/index.ts";
import { type TrlMessage, trlMessages, trlTools } from "./trl-messages.ts";

interface TrlDpoRow {
  readonly prompt: readonly TrlMessage[];
  readonly chosen: readonly TrlMessage[];
  readonly rejected: readonly TrlMessage[];
  readonly tools?: string;
  readonly task_id: string;
  readonly chosen_reward: number;
  readonly rejected_reward: number;
  readonly chosen_rollout_id: string;
  readonly rejected_rollout_id: string;
  readonly batch: string | null;
  readonly chosen_content: string;
  readonly rejected_content: string;
}

const CARRIED: readonly RolloutPart[] = ["conversations.forks", "conversations.tools", "reward"];

export const trlDpo: TrainerFormat<TrlDpoRow> = {
  from: "rollouts",
  together: "task",
  carried: CARRIED,
  async *rows(rollouts, { batch, losses, options }) {
    for await (const same of inGroups(rollouts, ({ task }) => task.id)) {
      const results = same.filter(({ excluded }) => excluded === null);
      losses.add("excluded rollouts", same.length - results.length);
      losses.add("unlabelled rollouts", results.filter(({ reward }) => reward === null).length);
      const contents = new Map(results.map(({ record, content }) => [record.rolloutId as string, content]));
      for (const rollout of results) losses.addParts(rollout, CARRIED);
      const conversations = results.flatMap((rollout) =>
        rollout.conversations.map((each) => toExported(rollout, each)),
      );
      const pairs = pairRows(conversations, options.minGap === undefined ? {} : { minGap: options.minGap });
      losses.add("rollouts without a pair", Math.max(0, contents.size - 2 * pairs.length));
      for (const { prompt, chosen, rejected, tools, ...facts } of pairs) {
        const [asked, better, worse] = [prompt, chosen, rejected].map(trlMessages);
        if (asked === undefined || better === undefined || worse === undefined) {
          losses.add("pairs with broken tool calls");
          continue;
        }
        yield {
          ...{ prompt: asked, chosen: better, rejected: worse, ...trlTools(tools), ...facts },
          batch: batch?.digest ?? null,
          chosen_content: contents.get(facts.chosen_rollout_id)!,
          rejected_content: contents.get(facts.rejected_rollout_id)!,
        };
      }
    }
  },
};
