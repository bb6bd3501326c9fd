/** Implements `rollbook data`: exports routing datasets from the book, and converts other formats to routing
 *  datasets. */
import { type Command, Option } from "commander";
import { RollbookError } from "../../../base/index.ts";
import { exportConversations, exportTable } from "../../../book/convert/index.ts";
import { everyDecision, requireSome, writeDataset, wrongUsage } from "../../../book/decisions/index.ts";
import { checkLog } from "../../../book/judge/index.ts";
import type { OpenBook } from "../../../book/open/index.ts";
import { type AdmittedRollouts, requireRollouts } from "../../../book/rollouts/index.ts";
import {
  BOOK_TABLES,
  type BookTableName,
  TABLE_FORMATS,
  type TableFormat,
} from "../../../convert/tables/index.ts";
import { SPLIT_UNITS, type SplitUnit } from "../../../learn/index.ts";
import { jsonLine, plural } from "../../../view/format.ts";
import { renderLogCheck } from "../../../view/judge/evaluation-view.ts";
import { admittedJson, renderEveryAdmitted } from "../../../view/ledger-view.ts";
import { addCommand, addGroup } from "../../command.ts";
import type { Io } from "../../io.ts";
import { finite, nonNegative } from "../../options/numbers.ts";
import {
  addRowOptions,
  filtersOf,
  type RowFlags,
  requestOf,
  withDecisions,
} from "../../options/row-options.ts";
import { withBook } from "../../with-book.ts";
import { addConvert } from "./convert.ts";
import { addDataImport, printDataset } from "./import.ts";

export function addData(program: Command, io: Io): void {
  const data = addGroup(program, "data", {
    summary: "datasets for trainers and routers: export, convert, import and check them",
    examples: [
      "rollbook data export --out routing.jsonl",
      "rollbook data convert --to art --out trajectories.parquet",
      "rollbook data import log.vw --format vw-cb --actions 2 --data-source real",
    ],
  });
  addCheck(data, io);
  addExport(data, io);
  addDataImport(data, io);
  addConvert(data, io);
}

function addCheck(data: Command, io: Io): void {
  const command = addCommand(data, "check", {
    summary: "check whether a log can judge a policy: size, propensities, repeated rows, outliers, drift",
    description: `Look for faults in a decision log. Exit 1 if the log is not fit to judge a policy. \`evaluate\` and
\`gate\` look for the same faults in the rows they judge by.

  size             below 50 tasks a fault, below 1000 a warning; no limit
                   if every row has the outcomes of all candidates
  propensities     missing, or they do not match the choices
  duplicates       rows that occur twice
  sessions         decisions of one session that depend on each other
  candidates       a candidate is chosen very rarely: is its name misspelt?
  constant-reward  the reward never changes
  outliers         rewards very far from the median
  heavy-tail       one decision holds much of a candidate's reward or cost
  drift            the mean reward of a candidate changes over time
  costs            some decisions have no cost, so cost is not judged`,
    examples: [
      "rollbook data check --data decisions.jsonl",
      "rollbook data check --data decisions.jsonl --json",
    ],
  }).addOption(
    new Option("--unit <unit>", "grouping key; rows with the same key count as one observation")
      .choices(SPLIT_UNITS)
      .default("task"),
  );
  addRowOptions(command, { data: true, families: "all" }).action(
    async (flags: RowFlags & { unit: SplitUnit; json?: true }) => {
      const request = { ...requestOf(flags), unit: flags.unit };
      const found = await withDecisions(io, flags, (source) => checkLog(source, request));
      io.out(flags.json ? jsonLine(found) : renderLogCheck(found, flags.unit));
      const [worst] = found.findings.filter(({ severity }) => severity === "refuse");
      if (worst !== undefined)
        throw new RollbookError(
          "bad-log",
          { kind: worst.kind },
          // The printed text already has the findings.
          flags.json ? worst.message : `the log cannot judge a policy, for the reason (${worst.kind}) above.`,
        );
    },
  );
}
type ExportFlags = RowFlags & {
  out: string;
  format: "decisions" | "sft" | "pairs" | TableFormat;
  table?: BookTableName;
  minScore?: number;
  minGap?: number;
};

function addExport(data: Command, io: Io): void {
  const command = addCommand(data, "export", {
    summary: "write decisions, conversations or tables of the book to one file",
    description: `Write the admitted rollouts of the book as a dataset (JSON Lines). Rejected, quarantined and cancelled
rollouts and failures that are not the agent's are excluded, as in a batch; the command prints how many.

decisions: a routing dataset, with a sidecar <out>.meta.json that counts rows by source and records the filters.
Decisions and outcomes are joined by id. A missing outcome or probability stays missing.

sft: conversations that end with a reply of the model, in OpenAI's chat form: messages, tools, reward.

pairs: for each question that several rollouts were asked, the reply with the highest and the one with the lowest
reward: prompt, chosen, rejected.

\`rollbook data convert --to trl-sft\` and \`--to trl-dpo\` write the same conversations for TRL, with provenance,
also from a batch.

parquet, arrow: one table for DuckDB, pyarrow or polars, chosen by --table. arrow writes an IPC file (Feather). The
table holds every rollout of the book, including those that the other formats exclude. Nested values are JSON text;
unknown values are null.`,
    examples: [
      "rollbook data export --out routing.jsonl",
      "rollbook data export --format sft --min-score 0.5 --out sft.jsonl",
      "rollbook data export --format pairs --out pairs.jsonl",
      "rollbook data export --format parquet --table calls --out calls.parquet",
      "rollbook data export --format arrow --table rollouts --out rollouts.arrow",
    ],
  })
    .requiredOption("--out <file>", "file to write; never overwritten")
    .addOption(
      new Option("--format <format>", "what to write")
        .choices(["decisions", "sft", "pairs", ...TABLE_FORMATS])
        .default("decisions"),
    )
    .addOption(
      new Option("--table <table>", "required by parquet and arrow: the table to write").choices(BOOK_TABLES),
    )
    .option("--min-score <n>", "sft: only conversations with at least this reward (default: all)", finite)
    .option(
      "--min-gap <n>",
      "pairs: least difference of the two rewards (default: any above 0)",
      nonNegative,
    );
  addRowOptions(command, { data: false, families: "all" }).action((flags: ExportFlags) => {
    requireFits(flags);
    return withBook(io, flags, async (book) => {
      requireRollouts(await book.index());
      const { format } = flags;
      if (isTable(format)) return exportRows(io, book, { ...flags, format });
      return format === "decisions"
        ? exportDecisions(io, book, flags)
        : exportChat(io, book, { ...flags, format });
    });
  });
}

function requireFits({ format, minScore, minGap, table, feedback }: ExportFlags): void {
  if (minScore !== undefined && format !== "sft") throw wrongUsage("--min-score belongs to --format sft");
  if (minGap !== undefined && format !== "pairs") throw wrongUsage("--min-gap belongs to --format pairs");
  if (table !== undefined && !isTable(format))
    throw wrongUsage("--table belongs to --format parquet and --format arrow");
  if (!isTable(format)) return;
  if (table === undefined) throw wrongUsage(`--format ${format} needs --table ${BOOK_TABLES.join("|")}`);
  if (feedback !== undefined)
    throw wrongUsage("--feedback has no effect on a table: rollouts list all feedback. Remove it");
}

function isTable(format: string): format is TableFormat {
  return TABLE_FORMATS.some((each) => each === format);
}

async function exportRows(
  io: Io,
  book: OpenBook,
  flags: ExportFlags & { format: TableFormat },
): Promise<void> {
  const { feedback: _, ...filter } = requestOf(flags); // refused earlier
  const exported = await exportTable(book, {
    ...filter,
    ...{ table: flags.table!, format: flags.format, out: flags.out },
  });
  const { rows, rollouts, out } = exported;
  io.out(
    flags.json ? jsonLine(exported) : `${plural(rows, "row")} of ${plural(rollouts, "rollout")}: ${out}\n`,
  );
}

async function exportDecisions(io: Io, book: OpenBook, flags: ExportFlags): Promise<void> {
  const request = { ...requestOf(flags), unlabelled: "keep", propensity: "any" } as const;
  const { admitted, rows } = await everyDecision(book, request);
  requireSome(admitted, request);
  requireOnce(admitted);
  const written = await writeDataset(rows(), { out: flags.out, filters: filtersOf(flags) });
  printDataset(io, flags, written, { admitted: admitted.map(admittedJson) });
  if (!flags.json) io.err(renderEveryAdmitted(admitted));
  const families = admitted.flatMap(({ rows, family }) => (rows.length > 0 ? [family] : []));
  if (families.length > 1)
    io.err(
      `warning: ${flags.out} holds decisions of the families ${families.join(", ")}. \`train\`, \`evaluate\` and \`gate\` read one: give them --family, or export one with --family\n`,
    );
}

/** A log imported under two families has every decision twice. A dataset with two rows of one id cannot be read. */
function requireOnce(admitted: readonly AdmittedRollouts[]): void {
  const familyOf = new Map<string, string>();
  for (const { family, rows } of admitted)
    for (const { rolloutId, stream } of rows) {
      const key = `${rolloutId}/${stream}`;
      const other = familyOf.get(key);
      if (other !== undefined)
        throw new RollbookError(
          "duplicate-decision",
          { rollout: rolloutId, families: [other, family] },
          `rollout ${rolloutId} is in the families ${other} and ${family}, and a dataset holds each decision once. Export one of them: --family ${family}.`,
        );
      familyOf.set(key, family);
    }
}

async function exportChat(
  io: Io,
  book: OpenBook,
  flags: ExportFlags & { format: "sft" | "pairs" },
): Promise<void> {
  const { format, out, minScore, minGap, json } = flags;
  const filter = requestOf(flags);
  const { rows, admitted, written } = await exportConversations(book, {
    format,
    out,
    filter,
    minScore,
    minGap,
  });
  const noun = format === "pairs" ? "pair" : "conversation";
  io.out(
    json
      ? jsonLine({ out, format, rows, admitted: admitted.map(admittedJson) })
      : `${plural(rows, noun)}: ${out}\n`,
  );
  if (!json) io.err(renderEveryAdmitted(admitted, written));
}
