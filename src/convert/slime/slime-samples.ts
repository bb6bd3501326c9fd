/** Rows of a token batch as slime's samples, one JSON object per line. examples/slime_samples.py converts them to a
 *  torch file. `group_index` counts the groups of the batch, `index` the samples. Samples of one rollout share
 *  `rollout_id`. A failure outside the baseline is marked (`status`, `remove_sample`) and has no reward. It never
 *  counts as 0. slime's own normalization rejects a missing reward; `post_process_rewards` of the script accepts it. */
import { type Json, RollbookError } from "../../base/index.ts";
import type { Ending } from "../../contract/index.ts";
import type { ChatMessage } from "../chat/index.ts";
import {
  groupOf,
  type HandedRollout,
  type HandoverContext,
  inGroups,
  promptOf,
  provenanceOfRollout,
  type RolloutPart,
  type RowProvenance,
  responseText,
  splitTokens,
  TokenRules,
  type TrainerFormat,
} from "../handover/index.ts";
import { labelText } from "./slime-prompts.ts";

type SlimeStatus = "completed" | "truncated" | "aborted" | "failed";

interface SlimeSample {
  readonly group_index: number;
  readonly index: number;
  readonly rollout_id: number;
  readonly prompt: string | readonly ChatMessage[];
  readonly tokens: readonly number[];
  readonly response: string;
  readonly response_length: number;
  readonly label: string | null;
  readonly reward: number | null;
  readonly loss_mask: readonly number[];
  readonly weight_versions: readonly string[];
  readonly rollout_log_probs: readonly number[];
  readonly remove_sample: boolean;
  readonly status: SlimeStatus;
  /** The payload of the task, and the provenance under `rollbook`. */
  readonly metadata: Readonly<Record<string, Json | RowProvenance>>;
  readonly session_id: string;
}

const CARRIED: readonly RolloutPart[] = [
  "ending",
  "reward",
  "task.label",
  "task.payload",
  "tokens.ids",
  "tokens.revisions",
];

export const slimeSamples: TrainerFormat<SlimeSample> = {
  from: "tokens",
  together: "group",
  carried: CARRIED,
  async *rows(rollouts, context) {
    const rules = new TokenRules();
    const sizes = new GroupSizes(context);
    const numbers = new Map<string, number>();
    let index = 0;
    let groupIndex = 0;
    for await (const whole of inGroups(rollouts, groupOf)) {
      const group =
        context.options.failures === "omit" ? whole.filter(({ excluded }) => excluded === null) : whole;
      context.losses.add("excluded rollouts (--failures omit)", whole.length - group.length);
      if (group.length === 0) continue;
      sizes.check(group);
      for (const rollout of group) {
        context.losses.addParts(rollout, CARRIED);
        const id = rollout.record.rolloutId;
        if (!numbers.has(id)) numbers.set(id, numbers.size);
        yield sampleOf(rollout, { context, rules, at: [groupIndex, index++, numbers.get(id)!] });
      }
      groupIndex++;
    }
  },
};

/** Groups must have equal sizes, and each must hold a result: a baseline without results teaches nothing. */
class GroupSizes {
  readonly #context: HandoverContext;
  #first: { group: string; size: number } | undefined;

  constructor(context: HandoverContext) {
    this.#context = context;
  }

  check(rollouts: readonly HandedRollout[]): void {
    const group = groupOf(rollouts[0]!);
    if (rollouts.every(({ excluded }) => excluded !== null))
      throw new RollbookError(
        "failed-group",
        { group, rollouts: rollouts.map(({ record }) => record.rolloutId) },
        `group ${group} holds failures only (${rollouts[0]!.excluded}): there is no reward to compare. Run its task again, or leave failures out with --failures omit.`,
      );
    const size = new Set(rollouts.map(({ record }) => record.rolloutId)).size;
    this.#first ??= { group, size };
    if (size === this.#first.size || this.#context.options.uneven === "keep") return;
    throw new RollbookError(
      "uneven-groups",
      { group, size, expected: this.#first.size },
      `group ${group} has ${size} rollouts, group ${this.#first.group} has ${this.#first.size}; slime would normalize the rewards of all groups together. Run the missing rollouts, or add --uneven keep and train with --custom-reward-post-process-path slime_samples.post_process_rewards.`,
    );
  }
}

function sampleOf(
  rollout: HandedRollout,
  {
    context,
    rules,
    at,
  }: { context: HandoverContext; rules: TokenRules; at: readonly [number, number, number] },
): SlimeSample {
  const { record, task, excluded, reward } = rollout;
  // A failed rollout may have ended before its first token.
  const tokens = excluded !== null && rollout.tokens === null ? null : rules.require(rollout);
  const split = tokens === null ? undefined : splitTokens(tokens);
  const [group_index, index, rollout_id] = at;
  return {
    group_index,
    index,
    rollout_id,
    prompt: promptOf(rollout) ?? "",
    tokens: tokens === null ? [] : Array.from(tokens.ids),
    response: responseText(rollout),
    response_length: split?.responseIds.length ?? 0,
    label: task.label === undefined ? null : labelText(task.label),
    reward: excluded === null ? reward : null,
    loss_mask: split?.responseMask ?? [],
    weight_versions: [...new Set(tokens?.segments.map(({ revision }) => revision.id))],
    rollout_log_probs: split?.responseLogprobs ?? [],
    remove_sample: excluded !== null,
    status: statusOf(record.ending),
    metadata: { ...task.payload, rollbook: provenanceOfRollout(rollout, context.batch) },
    session_id: record.rolloutId,
  };
}

function statusOf(ending: Ending): SlimeStatus {
  switch (ending.kind) {
    case "terminal":
      return "completed";
    case "truncated":
      return "truncated";
    case "failed":
      return "failed";
    case "cancelled":
      return "aborted";
    default:
      return ending satisfies never;
  }
}
