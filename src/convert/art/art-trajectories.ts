/** Groups of trajectories in the form of ART's Parquet logs. Unlabelled rollouts are left out: ART would read a missing
 *  reward as 0. Failures are left out too: ART keeps them as exceptions, which its files do not contain. */
import type { ChatMessage } from "../chat/index.ts";
import { toMessages } from "../chat/index.ts";
import {
  groupOf,
  type HandedRollout,
  type HandoverBatch,
  inGroups,
  provenanceOfRollout,
  type RolloutPart,
  type TrainerFormat,
} from "../handover/index.ts";
import { F64, FLAG, field, I64, list, orNull, struct, TEXT } from "../parquet/index.ts";

interface ArtMessage {
  readonly role: string;
  readonly content: string | null;
  /** JSON text. */
  readonly tool_calls: string | null;
  readonly tool_call_id: string | null;
  readonly trainable: boolean;
}

interface ArtRow {
  readonly group_index: bigint;
  readonly group_metadata: string | null;
  readonly group_metrics: string | null;
  readonly group_logs: readonly string[];
  readonly reward: number;
  readonly metrics: string | null;
  readonly metadata: string;
  readonly tools: string | null;
  readonly logs: readonly string[];
  readonly messages: readonly ArtMessage[];
}

const CARRIED: readonly RolloutPart[] = ["conversations.tools", "ending", "environment", "reward", "scores"];
const MESSAGE = struct({
  ...{ role: orNull(TEXT), content: orNull(TEXT), tool_calls: orNull(TEXT) },
  ...{ tool_call_id: orNull(TEXT), trainable: orNull(FLAG) },
});

export const artTrajectories: TrainerFormat<ArtRow> = {
  from: "rollouts",
  together: "group",
  carried: CARRIED,
  columns: [
    field("group_index", I64),
    field("group_metadata", orNull(TEXT)),
    field("group_metrics", orNull(TEXT)),
    field("group_logs", list(TEXT)),
    field("reward", F64),
    field("metrics", orNull(TEXT)),
    field("metadata", TEXT),
    field("tools", orNull(TEXT)),
    field("logs", list(TEXT)),
    field("messages", list(MESSAGE)),
  ],
  async *rows(rollouts, { batch, losses }) {
    let groupIndex = 0n;
    for await (const group of inGroups(rollouts, groupOf)) {
      let written = 0;
      for (const rollout of group) {
        const why = leftOut(rollout);
        if (why !== undefined) {
          losses.add(why);
          continue;
        }
        losses.addParts(rollout, CARRIED);
        yield artRow(rollout, { groupIndex, batch });
        written++;
      }
      if (written > 0) groupIndex++;
    }
  },
};

function leftOut({ excluded, reward, conversations }: HandedRollout): string | undefined {
  if (excluded !== null) return "excluded rollouts";
  if (reward === null) return "unlabelled rollouts";
  return conversations.length === 0 ? "rollouts without a conversation" : undefined;
}

function artRow(
  rollout: HandedRollout,
  { groupIndex, batch }: { groupIndex: bigint; batch: HandoverBatch | null },
): ArtRow {
  const { record, conversations } = rollout;
  const { turns, tools, model } = conversations.at(-1)!;
  const { ending, environment, scores } = record;
  const metrics = Object.fromEntries(scores.map(({ name, value }) => [name, value]));
  return {
    group_index: groupIndex,
    group_metadata: JSON.stringify({
      group: groupOf(rollout),
      task: record.task.id,
      batch: batch?.digest ?? "",
    }),
    group_metrics: null,
    group_logs: [],
    reward: rollout.reward!,
    metrics: scores.length === 0 ? null : JSON.stringify(metrics),
    // ART's metadata accepts only text, numbers and flags.
    metadata: JSON.stringify({
      ...provenanceOfRollout(rollout, batch),
      model,
      environment,
      ending: ending.kind,
    }),
    tools: Array.isArray(tools) && tools.length > 0 ? JSON.stringify(tools) : null,
    logs: [],
    messages: toMessages(turns).map(artMessage),
  };
}

function artMessage({ role, content, tool_calls, tool_call_id }: ChatMessage): ArtMessage {
  return {
    ...{ role, content },
    tool_calls: tool_calls === undefined ? null : JSON.stringify(tool_calls),
    tool_call_id: tool_call_id ?? null,
    trainable: role === "assistant",
  };
}
