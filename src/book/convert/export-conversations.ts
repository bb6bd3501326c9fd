/** Writes conversations of a book in OpenAI's chat form: complete ones for supervised training, or pairs of a better
 *  and a worse reply.
 *  In: an open book, filters. Out: the file, written completely or not at all. Selects the same rollouts and
 *  conversations as `data convert --to trl-sft` and `--to trl-dpo`, whose rows are in the form of TRL. */
import { type Digest, given, plural, RollbookError } from "../../base/index.ts";
import { pairRows, sftRow } from "../../convert/chat/index.ts";
import { type HandedRollout, inGroups, toExported } from "../../convert/handover/index.ts";
import { type DecisionRequest, writeJsonLines } from "../decisions/index.ts";
import type { OpenBook } from "../open/index.ts";
import type { AdmittedRollouts } from "../rollouts/index.ts";
import { everyAdmitted } from "./every-admitted.ts";
import { rolloutSource, rolloutsOfAdmitted } from "./gather-rollouts.ts";

interface ExportConversationsRequest {
  readonly format: "sft" | "pairs";
  /** Path of the new file; it must not exist. */
  readonly out: string;
  readonly filter?: DecisionRequest | undefined;
  /** sft: minimum reward. */
  readonly minScore?: number | undefined;
  /** pairs: minimum difference of the two rewards. */
  readonly minGap?: number | undefined;
}

interface ExportedConversations {
  readonly rows: number;
  readonly admitted: readonly AdmittedRollouts[];
  /** Contents of the rollouts that the rows come from. */
  readonly written: ReadonlySet<Digest>;
}

export async function exportConversations(
  book: OpenBook,
  request: ExportConversationsRequest,
): Promise<ExportedConversations> {
  const { format, out, filter = {} } = request;
  const source = await rolloutSource(book, `data export --format ${format}`);
  const admitted = await everyAdmitted(book, filter);
  const rollouts = rolloutsOfAdmitted(source, admitted, format === "pairs" ? "task" : "group");
  const seen = { rollouts: 0, replied: 0 };
  const counted = counting(rollouts, seen);
  const written = new Set<Digest>();
  const lines = (format === "pairs" ? pairs : conversations)(counted, request, written);
  const rows = await writeJsonLines(out, lines, () => noConversations(request, seen));
  return { rows, admitted, written };
}

interface Seen {
  rollouts: number;
  /** Rollouts with a conversation that ends with a reply of the model. */
  replied: number;
}

async function* counting(rollouts: AsyncIterable<HandedRollout>, seen: Seen): AsyncGenerator<HandedRollout> {
  for await (const rollout of rollouts) {
    seen.rollouts++;
    if (rollout.conversations.some((each) => sftRow(toExported(rollout, each)) !== undefined)) seen.replied++;
    yield rollout;
  }
}

function noConversations(
  { format, out, minScore, minGap = 0 }: ExportConversationsRequest,
  { rollouts, replied }: Seen,
): RollbookError {
  const count = plural(rollouts, "admitted rollout");
  const why =
    rollouts === 0
      ? "no rollout is admitted. Check the filters; `rollbook artifact ls` lists the rollouts"
      : replied === 0
        ? `of ${count} none has a conversation that ends with a reply of the model. Decisions that \`data import\` read have no replies: record calls through a gateway, or use --format decisions`
        : format === "pairs"
          ? `of ${count} ${replied} end with a reply, but no question has two replies whose rewards differ${minGap > 0 ? ` by at least ${minGap}` : ""}. Run each task several times (\`launch --samples\`), or lower --min-gap`
          : `of ${count} ${replied} end with a reply, and none has a reward of ${minScore} or more. Lower --min-score, or name late feedback with --feedback`;
  return new RollbookError("no-rows", { out, rollouts, replied }, `${out} would be empty: ${why}.`);
}

async function* conversations(
  rollouts: AsyncIterable<HandedRollout>,
  { minScore }: ExportConversationsRequest,
  written: Set<Digest>,
): AsyncGenerator<object> {
  for await (const rollout of rollouts)
    for (const conversation of rollout.conversations) {
      const row = sftRow(toExported(rollout, conversation));
      if (row === undefined) continue;
      if (minScore !== undefined && (row.reward === null || row.reward < minScore)) continue;
      written.add(rollout.content);
      yield row;
    }
}

/** Memory holds the rollouts of one task at a time. */
async function* pairs(
  rollouts: AsyncIterable<HandedRollout>,
  { minGap }: ExportConversationsRequest,
  written: Set<Digest>,
): AsyncGenerator<object> {
  for await (const same of inGroups(rollouts, ({ task }) => task.id)) {
    const rows = pairRows(
      same.flatMap((rollout) => rollout.conversations.map((each) => toExported(rollout, each))),
      given({ minGap }),
    );
    const paired = new Set(rows.flatMap((row) => [row.chosen_rollout_id, row.rejected_rollout_id]));
    for (const { record, content } of same) if (paired.has(record.rolloutId)) written.add(content);
    yield* rows;
  }
}
