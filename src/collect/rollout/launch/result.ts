/** The result of a rollout, read from the book. In: a planned rollout and its end in the queue. Out: a result.
 *  The result is the same for every worker, in this or another process, now or before a crash. */
import type { Digest, Id } from "../../../base/index.ts";
import {
  Call,
  type Ending,
  type Level,
  RolloutContent,
  RolloutEnvelope,
  type Stream,
  spentBy,
} from "../../../contract/index.ts";
import type { SettledItem } from "../../queue/index.ts";
import { type RolloutUsage, type Score, totalOf } from "../agent/index.ts";
import { parseClaimId } from "../work/index.ts";
import type { GivenReceipt, PlannedRollout, RecentRecords } from "../worker/index.ts";

interface Planned {
  readonly rolloutId: string;
  /** Index of the row, and of the sample within the row, both from 0. */
  readonly row: number;
  readonly sample: number;
  readonly task: string;
  readonly taskTitle: string | null;
  readonly group: string;
  readonly attempt: number;
  /** Usage of earlier runs: attempts that were given up, and runs that were killed or interrupted. */
  readonly givenUp: GivenUp;
}

export interface GivenUp extends RolloutUsage {
  readonly runs: number;
}

export interface SealedResult extends Planned {
  readonly state: "sealed";
  readonly envelope: Digest;
  readonly content: Digest;
  /** Answer of the worker server to the upload. */
  readonly receipt: GivenReceipt;
  readonly ending: Ending;
  /** The weighted sum of the scores. Null: unlabelled. */
  readonly reward: number | null;
  readonly scores: readonly Score[];
  readonly usage: RolloutUsage;
  /** Policies that chose among several candidates or sampled tokens: the last revision of each family. */
  readonly policies: readonly ResultPolicy[];
  readonly worker: string;
  readonly durationMs: number;
  /** True if an earlier run of the same command settled the rollout. */
  readonly earlier: boolean;
}

export interface ResultPolicy {
  readonly family: string;
  readonly level: Level;
  readonly revision: string;
}

/** Set aside without an artifact after its last attempt: its workers died, or it was cancelled. */
interface DeadResult extends Planned {
  readonly state: "dead";
  readonly reason: string;
}

export type RolloutResult = SealedResult | DeadResult;

/** A result without the receipt, which may not exist yet. */
export type ReadResult = Omit<SealedResult, "receipt"> | DeadResult;

/** The rollout that ran a failed sample again. */
export interface RepeatedSample {
  readonly id: Id;
  readonly envelope: Digest;
}

/** Returns the contents that the book holds for the first `claims` claims of an item. */
export type ContentsOf = (item: string, claims: number) => Promise<readonly Digest[]>;

export async function readResult(
  records: Pick<RecentRecords, "read" | "readOnce">,
  planned: PlannedRollout,
  { contentsOf, ...settled }: SettledItem & { readonly earlier: boolean; readonly contentsOf: ContentsOf },
): Promise<ReadResult> {
  const { id, row, sample, task, taskTitle, group } = planned;
  const { attempt } = settled;
  const common = { rolloutId: id, row, sample, task, taskTitle, group, attempt };
  if (settled.state === "dead") {
    const givenUp = await readGivenUp(records, await contentsOf(id, attempt));
    return { state: "dead", ...common, givenUp, reason: settled.reason };
  }
  const envelope = await records.read(RolloutEnvelope, settled.result);
  const content = await records.read(RolloutContent, envelope.content);
  const claims = parseClaimId(envelope.claim)?.token ?? attempt;
  const others = claims === 1 ? [] : await contentsOf(id, claims);
  const givenUp = others.filter((each) => each !== envelope.content);
  return {
    state: "sealed",
    ...common,
    givenUp: await readGivenUp(records, givenUp),
    policies: content.streams.flatMap(policyOf),
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

async function readGivenUp(
  records: Pick<RecentRecords, "read" | "readOnce">,
  contents: readonly Digest[],
): Promise<GivenUp> {
  const calls: Digest[] = [];
  for (const digest of contents) calls.push(...(await records.read(RolloutContent, digest)).calls);
  return { runs: contents.length, ...(await readUsage(records, { calls })) };
}

function policyOf(stream: Stream): ResultPolicy[] {
  const { family, level } = stream;
  const last =
    stream.level === "token"
      ? stream.segments.at(-1)
      : stream.steps.findLast(({ candidates }) => candidates.length > 1);
  return last === undefined ? [] : [{ family, level, revision: last.revision.id }];
}

export async function readUsage(
  records: Pick<RecentRecords, "readOnce">,
  { calls }: Pick<RolloutContent, "calls">,
): Promise<RolloutUsage> {
  const usage = { calls: calls.length, promptTokens: 0, completionTokens: 0, costUsd: 0 };
  let unpriced = 0;
  for (const digest of calls) {
    const call = await records.readOnce(Call, digest);
    usage.promptTokens += call.usage?.promptTokens ?? 0;
    usage.completionTokens += call.usage?.completionTokens ?? 0;
    const spent = spentBy({ costUsd: call.costUsd, status: call.response.status });
    if (spent === undefined) unpriced++;
    else usage.costUsd += spent;
  }
  return unpriced === 0 ? usage : { ...usage, unpriced };
}
