/** One row of a batch: the numbers of one stream, with its advantages filled in. */

import {
  type AdvantageMethod,
  checkTokenColumns,
  type ReadBlob,
  readTokenColumns,
  type StepStream,
  type TokenStream,
} from "../../contract/index.ts";
import { type AdmittedStream, labelSteps, labelTokens } from "../admit/index.ts";
import type { ShardWriter, StepRowColumns, TokenRowColumns } from "./shard-writer.ts";

/** `advantage` is the computed value for all samples of the row; the artifact's own advantages count only if
 *  requested. */
export async function tokenRow(
  read: ReadBlob,
  row: AdmittedStream,
  stream: TokenStream,
  by: { method: AdvantageMethod; advantage: number },
): Promise<TokenRowColumns> {
  const columns = await readTokenColumns(read, stream);
  checkTokenColumns(stream, columns, row.content);
  const { ids, logprobs, mask } = columns;
  const { rewards } = labelTokens(stream, columns, row.late)!;
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
  row: AdmittedStream,
  stream: StepStream,
  by: { method: AdvantageMethod; advantage: number },
  shard: ShardWriter,
): StepRowColumns {
  const steps = stream.steps;
  const { rewards } = labelSteps(stream, row.late)!;
  const candidates = steps.flatMap((each) => each.candidates);
  return {
    chosen: steps.map((each) => each.chosen),
    probability: steps.map((each) => each.candidates[each.chosen]!.probability ?? each.propensity!),
    rewards,
    advantages: steps.map((each) => (by.method === "claimed" ? (each.advantage ?? 0) : by.advantage)),
    candidateCounts: steps.map((each) => each.candidates.length),
    candidateIds: candidates.map((one) => shard.candidateNumber(one.id)),
    candidateProbability: candidates.map((one) => one.probability ?? Number.NaN),
    candidateSelectable: candidates.map((one) => (one.selectable ? 1 : 0)),
  };
}
