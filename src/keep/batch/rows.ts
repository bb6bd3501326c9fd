/** One row of a batch: the numbers of one stream, with its advantages filled in. */

import { type ReadBlob, readTokenColumns } from "../../contract/rollout-exchange.ts";
import { checkTokenColumns, type StepStream, type TokenStream } from "../../contract/stream.ts";
import type { AdvantageMethod } from "../../contract/trainer-batch.ts";
import { landingIndex } from "../admit/labels.ts";
import type { ShardWriter, StepRowColumns, TokenRowColumns } from "./shard-writer.ts";
import type { SurveyRow } from "../admit/select.ts";

/** `advantage` is the computed one, spread over the samples; the artifact's claims count only where asked for. */
export async function tokenRow(
  read: ReadBlob,
  row: SurveyRow,
  stream: TokenStream,
  by: { method: AdvantageMethod; advantage: number },
): Promise<TokenRowColumns> {
  const columns = await readTokenColumns(read, stream);
  checkTokenColumns(stream, columns, row.content);
  const { ids, logprobs, mask } = columns;
  const rewards = columns.rewards ?? lateRewardColumn(row, stream, mask);
  const advantages = new Float32Array(stream.length);
  if (by.method === "claimed") {
    if (columns.advantages)
      for (let i = 0; i < mask.length; i++) advantages[i] = mask[i] === 1 ? columns.advantages[i]! : 0;
  } else {
    for (let i = 0; i < mask.length; i++) advantages[i] = mask[i] === 1 ? by.advantage : 0;
  }
  return { ids, logprobs, mask, turns: columns.turns ?? new Uint32Array(stream.length), rewards, advantages };
}

export function stepRow(
  row: SurveyRow,
  stream: StepStream,
  by: { method: AdvantageMethod; advantage: number },
  shard: ShardWriter,
): StepRowColumns {
  const steps = stream.steps;
  const labelled = steps.every((each) => each.reward !== null);
  const rewards = steps.map((each) => (labelled ? each.reward! : 0));
  if (!labelled)
    for (const late of row.late) addAt(rewards, landingIndex(stream, undefined, late), late.value);
  const candidates = steps.flatMap((each) => each.candidates);
  return {
    chosen: steps.map((each) => each.chosen),
    probability: steps.map((each) => each.candidates[each.chosen]!.probability!),
    rewards,
    advantages: steps.map((each) => (by.method === "claimed" ? (each.advantage ?? 0) : by.advantage)),
    candidateCounts: steps.map((each) => each.candidates.length),
    candidateIds: candidates.map((one) => shard.candidateNumber(one.id)),
    candidateProbability: candidates.map((one) => one.probability!),
    candidateSelectable: candidates.map((one) => (one.selectable ? 1 : 0)),
  };
}

function lateRewardColumn(row: SurveyRow, stream: TokenStream, mask: Uint8Array): Float32Array {
  const rewards = new Float32Array(stream.length);
  for (const late of row.late) addAt(rewards, landingIndex(stream, mask, late), late.value);
  return rewards;
}

function addAt(values: { [index: number]: number }, index: number, value: number): void {
  if (index >= 0) values[index] = values[index]! + value;
}
