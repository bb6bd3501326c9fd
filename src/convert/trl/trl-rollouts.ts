/** Rows of a token batch as the rollout samples of TRL's asynchronous GRPO, with the log-probabilities of sampling.
 *  The advantage comes from the batch: one number per sample. A batch whose advantages differ by token is refused. */
import { RollbookError } from "../../base/index.ts";
import {
  groupOf,
  type HandedRollout,
  type HandoverBatch,
  provenanceOfRollout,
  type RolloutPart,
  type RowProvenance,
  splitConversation,
  TokenRules,
  type TrainerFormat,
} from "../handover/index.ts";
import { type TrlMessage, trlMessages } from "./trl-messages.ts";

interface TrlRolloutRow {
  readonly prompt: readonly TrlMessage[];
  readonly completion: readonly TrlMessage[];
  readonly input_ids: readonly number[];
  /** 1: the token was sampled. As long as `input_ids`, like `old_log_probs`. */
  readonly completion_mask: readonly number[];
  readonly old_log_probs: readonly number[];
  readonly advantage: number;
  /** Number of the oldest revision that sampled. -1 if no record has its number. */
  readonly model_version: number;
  readonly group_id: number;
  readonly metrics: { readonly reward: number };
  readonly rollbook: RowProvenance;
}

const CARRIED: readonly RolloutPart[] = ["reward", "tokens.ids", "tokens.advantages", "tokens.revisions"];

export const trlRollouts: TrainerFormat<TrlRolloutRow> = {
  from: "tokens",
  together: "group",
  carried: CARRIED,
  async *rows(rollouts, { batch, losses }) {
    const rules = new TokenRules();
    const groups = new Map<string, number>();
    for await (const rollout of rollouts) {
      if (rollout.excluded !== null) {
        losses.add("excluded rollouts");
        continue;
      }
      losses.addParts(rollout, CARRIED);
      const group = groupOf(rollout);
      if (!groups.has(group)) groups.set(group, groups.size);
      const row = rolloutRow(rollout, { batch, rules, group: groups.get(group)! });
      if (row.model_version < 0) losses.add("tokens.revisions (no number)");
      yield row;
    }
  },
};

function rolloutRow(
  rollout: HandedRollout,
  { batch, rules, group }: { batch: HandoverBatch | null; rules: TokenRules; group: number },
): TrlRolloutRow {
  const tokens = rules.require(rollout);
  const { rolloutId } = rollout.record;
  const { advantage } = tokens;
  if (advantage === null)
    throw new RollbookError(
      "advantage-by-token",
      { row: rolloutId },
      `rollout ${rolloutId} has advantages that differ by token; a rollout sample has one. Cut the batch with --advantage mean-std or leave-one-out.`,
    );
  const last = rollout.conversations.at(-1);
  const { prompt, completion } =
    last === undefined ? { prompt: [], completion: [] } : splitConversation(last);
  const versions = tokens.segments.flatMap(({ revision }) => batch?.numberOf(revision.id) ?? []).map(Number);
  return {
    prompt: trlMessages(prompt) ?? [],
    completion: trlMessages(completion) ?? [],
    input_ids: Array.from(tokens.ids),
    completion_mask: Array.from(tokens.mask),
    old_log_probs: Array.from(tokens.logprobs, (each, i) => (tokens.mask[i] === 1 ? each : 0)),
    advantage,
    model_version: versions.length === 0 ? -1 : Math.min(...versions),
    group_id: group,
    metrics: { reward: rollout.reward! },
    rollbook: provenanceOfRollout(rollout, batch),
  };
}
