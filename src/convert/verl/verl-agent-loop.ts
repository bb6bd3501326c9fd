/** Rows of a token batch as the outputs of verl's agent loop, as Parquet: prompt and response ids, the mask of sampled
 *  tokens, their log-probabilities and the reward. `uid` is the group, over which verl computes advantages. */
import { RollbookError } from "../../base/index.ts";
import {
  groupOf,
  type HandedRollout,
  type HandoverBatch,
  provenanceOfRollout,
  type RolloutPart,
  type RowProvenance,
  splitTokens,
  TokenRules,
  type TrainerFormat,
} from "../handover/index.ts";
import { F32, F64, field, I64, list, orNull, struct, TEXT } from "../parquet/index.ts";

interface VerlAgentLoopRow {
  readonly uid: string;
  readonly data_source: string;
  readonly prompt_ids: readonly bigint[];
  readonly response_ids: readonly bigint[];
  readonly response_mask: readonly bigint[];
  readonly response_logprobs: readonly number[];
  readonly reward_score: number;
  readonly num_turns: bigint;
  readonly metrics: {
    readonly generate_sequences: number;
    readonly tool_calls: number;
    readonly compute_score: number;
    readonly num_preempted: bigint;
  };
  readonly extra_fields: Omit<RowProvenance, "stream"> & {
    readonly stream: bigint;
    readonly min_global_steps: bigint | null;
    readonly max_global_steps: bigint | null;
  };
}

const CARRIED: readonly RolloutPart[] = ["environment", "reward", "tokens.ids", "tokens.revisions"];

export const verlAgentLoop: TrainerFormat<VerlAgentLoopRow> = {
  from: "tokens",
  together: "group",
  carried: CARRIED,
  columns: [
    field("uid", TEXT),
    field("data_source", TEXT),
    field("prompt_ids", list(I64)),
    field("response_ids", list(I64)),
    field("response_mask", list(I64)),
    field("response_logprobs", list(F32)),
    field("reward_score", F64),
    field("num_turns", I64),
    field(
      "metrics",
      struct({ generate_sequences: F64, tool_calls: F64, compute_score: F64, num_preempted: I64 }),
    ),
    field(
      "extra_fields",
      struct({
        batch: orNull(TEXT),
        content: TEXT,
        envelope: orNull(TEXT),
        rollout_id: TEXT,
        task_id: TEXT,
        group: TEXT,
        ...{ stream: I64, min_global_steps: orNull(I64), max_global_steps: orNull(I64) },
      }),
    ),
  ],
  async *rows(rollouts, { batch, losses }) {
    const rules = new TokenRules();
    for await (const rollout of rollouts) {
      if (rollout.excluded !== null) {
        losses.add("excluded rollouts");
        continue;
      }
      losses.addParts(rollout, CARRIED);
      yield agentLoopRow(rollout, batch, rules);
    }
  },
};

function agentLoopRow(
  rollout: HandedRollout,
  batch: HandoverBatch | null,
  rules: TokenRules,
): VerlAgentLoopRow {
  const tokens = rules.require(rollout);
  const split = splitTokens(tokens);
  const { rolloutId, environment } = rollout.record;
  if (split.promptIds.length === 0)
    throw new RollbookError(
      "empty-prompt",
      { row: rolloutId },
      `rollout ${rolloutId} begins with a sampled token; verl pads prompts and takes none that is empty. Leave it out with \`rollbook batch assemble --exclude ${rolloutId}\`.`,
    );
  const steps = tokens.segments
    .flatMap(({ revision }) => batch?.numberOf(revision.id) ?? [])
    .sort((a, b) => (a < b ? -1 : 1));
  const turns = rollout.conversations.at(-1)?.turns.length ?? 0;
  const provenance = provenanceOfRollout(rollout, batch);
  return {
    uid: groupOf(rollout),
    data_source: environment,
    prompt_ids: split.promptIds.map(BigInt),
    response_ids: split.responseIds.map(BigInt),
    response_mask: split.responseMask.map(BigInt),
    response_logprobs: split.responseLogprobs,
    reward_score: rollout.reward!,
    num_turns: BigInt(turns),
    metrics: { generate_sequences: 0, tool_calls: 0, compute_score: 0, num_preempted: -1n },
    extra_fields: {
      ...provenance,
      stream: BigInt(tokens.stream),
      min_global_steps: steps[0] ?? null,
      max_global_steps: steps.at(-1) ?? null,
    },
  };
}
