/** Writes every rollout of a book, its calls or its decisions as one Parquet or Arrow file.
 *  In: an open book, a table, filters. Out: the file, written completely or not at all. The tables are for
 *  inspection: they include failed and rejected rollouts. Training and evaluation read only admitted rollouts. */
import { RolloutContent, RolloutEnvelope } from "../../contract/index.ts";
import {
  type BookTableName,
  type TabledRollout,
  type TableFormat,
  writeTable,
} from "../../convert/tables/index.ts";
import { readRecord } from "../../store/index.ts";
import { type OpenBook, readOf } from "../open/index.ts";
import {
  type ListedRollout,
  lastRun,
  listRollouts,
  type RolloutFilter,
  requireExperiment,
  withFeedback,
} from "../rollouts/index.ts";

interface ExportTableRequest
  extends Pick<RolloutFilter, "experiment" | "session" | "dataSource" | "sinceMs" | "untilMs"> {
  readonly table: BookTableName;
  readonly format: TableFormat;
  /** Path of the new file; it must not exist. */
  readonly out: string;
  /** Keeps rollouts with a stream of this policy family. A table of decisions holds only decisions of this family. */
  readonly family?: string | undefined;
}

interface ExportedTable {
  readonly table: BookTableName;
  readonly out: string;
  readonly rollouts: number;
  readonly rows: number;
}

export async function exportTable(book: OpenBook, request: ExportTableRequest): Promise<ExportedTable> {
  const { table, format, out, family, experiment } = request;
  if (experiment !== undefined) requireExperiment(await book.index(), experiment);
  const read = readOf(book, `data export --table ${table}`);
  const all = await listRollouts(book, { family, experiment });
  const wanted = await withFeedback(
    book,
    all.filter((row) => isWanted(row, request)),
  );
  const rollouts = async function* (): AsyncGenerator<TabledRollout> {
    for (const listed of wanted) yield await readRollout(read, listed);
  };
  const rows = await writeTable({ table, format, out, family, read, rollouts: rollouts() });
  return { table, out, rollouts: wanted.length, rows };
}

type ReadBook = ReturnType<typeof readOf>;

async function readRollout(read: ReadBook, listed: ListedRollout): Promise<TabledRollout> {
  const runs: { envelope: RolloutEnvelope }[] = [];
  for (const digest of listed.envelopes)
    runs.push({ envelope: await readRecord(read, RolloutEnvelope, digest) });
  const content = await readRecord(read, RolloutContent, listed.content);
  return { listed, content, envelope: lastRun(runs).envelope };
}

function isWanted(
  row: Pick<ListedRollout, "group" | "rolloutId" | "dataSource" | "startedAtMs">,
  { session, dataSource, sinceMs = 0, untilMs = Number.POSITIVE_INFINITY }: ExportTableRequest,
): boolean {
  return (
    (session === undefined || (row.group ?? row.rolloutId) === session) &&
    (dataSource === undefined || row.dataSource === dataSource) &&
    row.startedAtMs >= sinceMs &&
    row.startedAtMs < untilMs
  );
}
