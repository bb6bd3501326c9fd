/** What became of a rollout, read from the book. In: a planned rollout and its end in the queue. Out: a result.
 *  The same for every worker, here or in another process, now or before a crash. */
import type { Digest, Id } from "../../../base/index.ts";
import { Call, type Ending, RolloutContent, RolloutEnvelope } from "../../../contract/index.ts";
import type { SettledItem } from "../../queue/index.ts";
import { type RolloutUsage, type Score, totalOf } from "../agent/index.ts";
import type { GivenReceipt, PlannedRollout, RecentRecords } from "../worker/index.ts";

interface Planned {
  readonly rolloutId: string;
  /** Which row, from 0, and which sample of it. */
  readonly row: number;
  readonly sample: number;
  readonly task: string;
  readonly taskTitle: string | null;
  readonly group: string;
  readonly attempt: number;
}

export interface SealedResult extends Planned {
  readonly state: "sealed";
  readonly envelope: Digest;
  readonly content: Digest;
  /** What the worker server said when it was uploaded. */
  readonly receipt: GivenReceipt;
  readonly ending: Ending;
  /** The weighted sum of the scores; null: unlabelled. */
  readonly reward: number | null;
  readonly scores: readonly Score[];
  readonly usage: RolloutUsage;
  readonly worker: string;
  readonly durationMs: number;
  /** Settled before this launch began: by an earlier run of the same command. */
  readonly earlier: boolean;
}

/** Set aside after its last attempt, without an artifact: its workers died, or it was cancelled. */
interface DeadResult extends Planned {
  readonly state: "dead";
  readonly reason: string;
}

export type RolloutResult = SealedResult | DeadResult;

/** All but the receipt, which may not be there yet. */
export type ReadResult = Omit<SealedResult, "receipt"> | DeadResult;

/** The rollout that ran a failed sample again. */
export interface RepeatedSample {
  readonly id: Id;
  readonly envelope: Digest;
}

export async function readResult(
  records: Pick<RecentRecords, "read">,
  planned: PlannedRollout,
  settled: SettledItem & { readonly earlier: boolean },
): Promise<ReadResult> {
  const { id, row, sample, task, taskTitle, group } = planned;
  const common = { rolloutId: id, row, sample, task, taskTitle, group, attempt: settled.attempt };
  if (settled.state === "dead") return { state: "dead", ...common, reason: settled.reason };
  const envelope = await records.read(RolloutEnvelope, settled.result);
  const content = await records.read(RolloutContent, envelope.content);
  return {
    state: "sealed",
    ...common,
    envelope: settled.result,
    content: envelope.content,
    ending: content.ending,
    reward: totalOf(content.scores),
    scores: content.scores,
    usage: await readUsage(records, content),
    worker: envelope.worker,
    durationMs: envelope.endedAtMs - envelope.startedAtMs,
    earlier: settled.earlier,
  };
}

export async function readUsage(
  records: Pick<RecentRecords, "read">,
  { calls }: Pick<RolloutContent, "calls">,
): Promise<RolloutUsage> {
  const usage = { calls: calls.length, promptTokens: 0, completionTokens: 0, costUsd: 0 };
  for (const digest of calls) {
    const call = await records.read(Call, digest);
    usage.promptTokens += call.usage?.promptTokens ?? 0;
    usage.completionTokens += call.usage?.completionTokens ?? 0;
    usage.costUsd += call.costUsd ?? 0;
  }
  return usage;
}
