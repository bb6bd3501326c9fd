/** Implements `rollbook data convert`: writes rollouts in the format of a trainer or a trace tool. */
import { type Command, Option } from "commander";
import {
  type ConvertedRollouts,
  convertRollouts,
  convertTraces,
  importTraces,
} from "../../../book/convert/index.ts";
import { wrongUsage } from "../../../book/decisions/index.ts";
import {
  TRACE_FORMATS,
  TRAINER_FORMATS,
  type TraceFormatName,
  type TrainerFormatName,
} from "../../../convert/formats/index.ts";
import { jsonLine, plural, printable, short } from "../../../view/format.ts";
import { admittedJson, renderEveryAdmitted } from "../../../view/ledger-view.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { finite, nonNegative } from "../../options/numbers.ts";
import { addRowOptions, type RowFlags, requestOf } from "../../options/row-options.ts";
import { withBook } from "../../with-book.ts";

interface ConvertFlags extends RowFlags {
  to?: TrainerFormatName;
  from?: TraceFormatName;
  out?: string;
  batch?: string;
  uneven?: "refuse" | "keep";
  failures?: "mark" | "omit";
  threshold?: number;
  minGap?: number;
}

export function addConvert(data: Command, io: Io): void {
  const command = addCommand(data, "convert", {
    summary:
      "write rollouts for slime, verl, TRL, ART, verifiers or ATIF, or read traces of verifiers and ATIF",
    description: `Write rollouts in the format of a trainer or a trace tool. With --batch it writes the rows of a
sealed batch, and marks excluded rollouts where the format has a field for that. Without --batch it writes every
admitted rollout of the book. Token formats (slime, verl-agent-loop, trl-rollouts) need --batch. verl, verl-agent-loop
and art are Parquet files, the others JSON Lines. The command prints the fields and rollouts that are not in the file,
with the number of rollouts. \`rollbook data export --format sft|pairs\` writes the conversations of trl-sft and
trl-dpo in OpenAI's chat form.

--from reads traces of another program into the book as rollouts, and signs them if you have a key. With --out it
writes them to a file that \`rollbook artifact import\` reads. A trace that Rollbook exported becomes the same rollout
again, with the records it refers to, also in another book.`,
    examples: [
      "rollbook data convert --to trl-sft --out trl.jsonl",
      "rollbook data convert --to slime --batch b745 --uneven keep --failures omit --out samples.jsonl",
      "rollbook data convert --to verifiers --out traces.jsonl",
      "rollbook data convert --from verifiers traces.jsonl --out rollouts-of-traces.jsonl",
    ],
  })
    .argument("[file]", "--from: the file to read")
    .addOption(new Option("--to <format>", "format to write").choices(TRAINER_FORMATS))
    .addOption(new Option("--from <format>", "format of the traces to read").choices(TRACE_FORMATS))
    .option("--out <file>", "file to write; must not exist")
    .option(
      "--batch <batch>",
      "write the rows of this batch: digest, or the first digits of it (default: all admitted rollouts)",
    )
    .addOption(
      new Option("--uneven <choice>", "slime: groups of different sizes (default: refuse)").choices([
        "refuse",
        "keep",
      ]),
    )
    .addOption(
      new Option(
        "--failures <choice>",
        "slime: rollouts that are no result of the agent (cancelled; failed by the provider, the sandbox, the infrastructure or the task; and, in the last case, all other rollouts of the task). mark: keep them without a reward, with remove_sample; omit: leave them out (default: mark)",
      ).choices(["mark", "omit"]),
    )
    .option("--threshold <n>", "trl-kto, required: least reward of a desirable completion", finite)
    .option(
      "--min-gap <n>",
      "trl-dpo: least difference of the two rewards (default: any above 0)",
      nonNegative,
    );
  addRowOptions(command, { data: false, families: "all" }).action(
    (file: string | undefined, flags: ConvertFlags) => runConvert(io, file, flags),
  );
}

async function runConvert(io: Io, file: string | undefined, flags: ConvertFlags): Promise<void> {
  const { to, from, out } = flags;
  if (to !== undefined && from !== undefined)
    throw wrongUsage("--to writes files and --from reads them. Remove one of them");
  if (to === undefined && from === undefined)
    throw wrongUsage(
      "no direction is named. Name the format to write with --to, or the one to read with --from",
    );
  if (from !== undefined) {
    if (file === undefined) throw wrongUsage(`--from ${from} needs the file to read`);
    const { batch, uneven, failures, threshold, minGap, family, session, since, until, feedback } = flags;
    const idle = { batch, uneven, failures, threshold, minGap, family, session, since, until, feedback };
    const [name] = Object.entries(idle).find(([, value]) => value !== undefined) ?? [];
    if (name !== undefined)
      throw wrongUsage(`--${name === "minGap" ? "min-gap" : name} has no effect with --from. Remove it`);
    return runRead(io, { ...flags, from, file });
  }
  if (file !== undefined) throw wrongUsage(`--to reads the book, and ${file} belongs to --from`);
  if (out === undefined) throw wrongUsage("--to needs --out, the file to write");
  await runWrite(io, { ...flags, to: to!, out });
}

async function runRead(io: Io, flags: ConvertFlags & { from: TraceFormatName; file: string }): Promise<void> {
  const { from, file, out, dataSource } = flags;
  const request = { from, file, dataSource };
  const read =
    out === undefined
      ? await withBook(io, { ...flags, mode: "write" }, (book) => importTraces(book, request))
      : await convertTraces({ ...request, out });
  if (flags.json) io.out(jsonLine({ from, file, out: out ?? null, ...read }));
  else
    io.out(
      `${plural(read.rollouts, "rollout")} of ${from}, ${read.identical} the same as exported${out === undefined ? "" : `: ${out}`}\n`,
    );
}

async function runWrite(io: Io, flags: ConvertFlags & { to: TrainerFormatName; out: string }): Promise<void> {
  const { to, out, batch, uneven, failures, threshold, minGap } = flags;
  const converted = await withBook(io, flags, (book) =>
    convertRollouts(book, { to, out, batch, uneven, failures, threshold, minGap, filter: requestOf(flags) }),
  );
  if (flags.json) io.out(jsonLine({ ...converted, admitted: converted.admitted.map(admittedJson) }));
  else printConverted(io, converted);
}

function printConverted(
  io: Io,
  { to, out, rows, batch, losses, warnings, admitted }: ConvertedRollouts,
): void {
  for (const message of warnings) io.err(`warning: ${printable(message)}\n`);
  io.out(`${out}: ${plural(rows, "row")} of ${to}${batch === null ? "" : `, batch ${short(batch)}`}\n`);
  if (losses.length > 0) io.err(`not in the ${to} file (number of rollouts):\n`);
  for (const { field, count } of losses) io.err(`  ${field}: ${count}\n`);
  io.err(renderEveryAdmitted(admitted, "admitted"));
}
