/** `rollbook data convert`: rollouts in the format of a trainer or a trace tool. */
import { type Command, Option } from "commander";
import { type ConvertedRollouts, convertRollouts } from "../../../book/convert/index.ts";
import { TRAINER_FORMATS, type TrainerFormatName } from "../../../convert/formats/index.ts";
import { jsonLine, plural, printable, short } from "../../../view/format.ts";
import { admittedJson, renderAdmitted } from "../../../view/ledger-view.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { finite, nonNegative } from "../../options/numbers.ts";
import { addRowOptions, type RowFlags, requestOf } from "../../options/row-options.ts";
import { withBook } from "../../with-book.ts";

interface ConvertFlags extends RowFlags {
  to: TrainerFormatName;
  out: string;
  batch?: string;
  uneven?: "refuse" | "keep";
  failures?: "mark" | "omit";
  threshold?: number;
  minGap?: number;
}

export function addConvert(data: Command, io: Io): void {
  const command = addCommand(data, "convert", {
    summary: "write rollouts in the format of slime, verl, TRL, ART, verifiers or ATIF",
    description: `Write rollouts in the format of a trainer or a trace tool. With --batch the rows are those of a sealed batch, and failures
of its groups are marked where the format has a mark; without it, everything that the book admits. Formats of tokens (slime,
trl-rollouts) need --batch. The command prints the fields that the format cannot carry, with the number of rollouts that had them.`,
    examples: [
      "rollbook data convert --to trl-sft --out sft.jsonl",
      "rollbook data convert --to slime --batch b745 --out samples.jsonl",
    ],
  })
    .addOption(new Option("--to <format>", "format to write").choices(TRAINER_FORMATS).makeOptionMandatory())
    .requiredOption("--out <file>", "file to write; must not exist")
    .option("--batch <batch>", "rows of this batch: digest, or the first digits of it")
    .addOption(
      new Option("--uneven <choice>", "slime: groups of different sizes (default: refuse)").choices([
        "refuse",
        "keep",
      ]),
    )
    .addOption(
      new Option("--failures <choice>", "slime: failures outside the baseline (default: mark)").choices([
        "mark",
        "omit",
      ]),
    )
    .option("--threshold <n>", "trl-kto: least reward of a desirable completion", finite)
    .option("--min-gap <n>", "trl-dpo: least difference of the two rewards", nonNegative);
  addRowOptions(command, { data: false, families: "all" }).action((flags: ConvertFlags) =>
    runConvert(io, flags),
  );
}

async function runConvert(io: Io, flags: ConvertFlags): Promise<void> {
  const { to, out, batch, uneven, failures, threshold, minGap } = flags;
  const converted = await withBook(io, flags, (book) =>
    convertRollouts(book, { to, out, batch, uneven, failures, threshold, minGap, filter: requestOf(flags) }),
  );
  if (flags.json) {
    io.out(jsonLine({ ...converted, admitted: converted.admitted.map(admittedJson) }));
    return;
  }
  printConverted(io, converted);
}

function printConverted(
  io: Io,
  { to, out, rows, batch, losses, warnings, admitted }: ConvertedRollouts,
): void {
  for (const message of warnings) io.err(`warning: ${printable(message)}\n`);
  io.out(`${out}: ${plural(rows, "row")} of ${to}${batch === null ? "" : `, batch ${short(batch)}`}\n`);
  if (losses.length > 0) io.err(`${to} cannot carry (number of rollouts that had it):\n`);
  for (const { field, count } of losses) io.err(`  ${field}: ${count}\n`);
  for (const each of admitted) io.err(renderAdmitted(each));
}
