/** Writes conversations of a book in OpenAI's chat form: whole ones for supervised training, or pairs of a better and a worse
 *  reply. In: an open book, filters. Out: the file, there whole or not at all. The rollouts, and which conversations make a row,
 *  are those of `data convert --to trl-sft` and `--to trl-dpo`, whose rows are in the form of TRL. */
import { given } from "../../base/index.ts";
import { pairRows, sftRow } from "../../convert/chat/index.ts";
import { type HandedRollout, inGroups, toExported } from "../../convert/handover/index.ts";
import { type DecisionRequest, everyAdmitted, writeJsonLines } from "../decisions/index.ts";
import type { OpenBook } from "../open/index.ts";
import type { AdmittedRollouts } from "../rollouts/index.ts";
import { rolloutSource, rolloutsOfAdmitted } from "./gather-rollouts.ts";

interface ExportConversationsRequest {
  readonly format: "sft" | "pairs";
  /** A free path. */
  readonly out: string;
  readonly filter?: DecisionRequest | undefined;
  /** sft: the least reward. */
  readonly minScore?: number | undefined;
  /** pairs: the least difference of the two rewards. */
  readonly minGap?: number | undefined;
}

export async function exportConversations(
  book: OpenBook,
  request: ExportConversationsRequest,
): Promise<{ readonly rows: number; readonly admitted: readonly AdmittedRollouts[] }> {
  const { format, out, filter = {} } = request;
  const source = await rolloutSource(book, `data export --format ${format}`);
  const admitted = await everyAdmitted(book, filter);
  const rollouts = rolloutsOfAdmitted(source, admitted, format === "pairs" ? "task" : "group");
  const rows = format === "pairs" ? pairs(rollouts, request) : conversations(rollouts, request);
  return { rows: await writeJsonLines(out, rows), admitted };
}

async function* conversations(
  rollouts: AsyncIterable<HandedRollout>,
  { minScore }: ExportConversationsRequest,
): AsyncGenerator<object> {
  for await (const rollout of rollouts)
    for (const conversation of rollout.conversations) {
      const row = sftRow(toExported(rollout, conversation));
      if (row === undefined) continue;
      if (minScore === undefined || (row.reward !== null && row.reward >= minScore)) yield row;
    }
}

/** Memory holds the rollouts of one task. */
async function* pairs(
  rollouts: AsyncIterable<HandedRollout>,
  { minGap }: ExportConversationsRequest,
): AsyncGenerator<object> {
  for await (const same of inGroups(rollouts, ({ task }) => task.id))
    yield* pairRows(
      same.flatMap((rollout) => rollout.conversations.map((each) => toExported(rollout, each))),
      given({ minGap }),
    );
}
