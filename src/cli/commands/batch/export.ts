/** Implements `rollbook batch export`: writes the rows of a batch as one file for a trainer. */
import { extname } from "node:path";
import { type Command, Option } from "commander";
import { RollbookError } from "../../../base/index.ts";
import { exportBatch } from "../../../book/batches/index.ts";
import { EXPORT_FORMATS, type ExportFormat } from "../../../convert/batch/index.ts";
import { jsonLine, plural, short, thousands } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { type BookFlags, withBook } from "../../with-book.ts";

interface BatchExportFlags extends BookFlags {
  format?: ExportFormat;
  out: string;
}

export function addBatchExport(batch: Command, io: Io): void {
  addCommand(batch, "export", {
    summary: "write the rows of a batch to one file for a trainer",
    description: `Write the rows of a batch to one file: JSON Lines, numpy (npz), safetensors or Parquet. The file
names the batch, its manifest, target, seed and options. An existing file is never overwritten, and a failed export
leaves no file behind.`,
    examples: [
      "rollbook batch export b745 --out batch.npz",
      "rollbook batch export b745 --format parquet --out batch.parquet --json",
    ],
  })
    .argument("<batch>", "digest, or the first digits of it")
    .addOption(
      new Option(
        "--format <format>",
        "format of the file; by default, the extension of --out gives it",
      ).choices(EXPORT_FORMATS),
    )
    .requiredOption("--out <file>", "file to write; must not exist")
    .action(async (name: string, flags: BatchExportFlags) => {
      const format = flags.format ?? formatOf(flags.out);
      const named = formatNamed(flags.out);
      if (named !== undefined && named !== format)
        io.err(`warning: ${flags.out} is written as ${format}, although its name ends in .${named}\n`);
      const exported = await withBook(io, flags, (book) => exportBatch(book, name, { ...flags, format }));
      const { batch: digest, out, rows, samples, bytes } = exported;
      io.out(
        flags.json
          ? jsonLine(exported)
          : `${out}: ${plural(rows, "row")} with ${plural(samples, "sample")} of batch ${short(digest)} (${thousands(bytes)} bytes)\n`,
      );
    });
}

function formatNamed(out: string): ExportFormat | undefined {
  const extension = extname(out).slice(1);
  return EXPORT_FORMATS.find((each) => each === extension);
}

function formatOf(out: string): ExportFormat {
  const format = formatNamed(out);
  if (format !== undefined) return format;
  throw new RollbookError(
    "wrong-usage",
    { out },
    `the name ${out} does not say a format. Give --format, or end the name with ${EXPORT_FORMATS.map((each) => `.${each}`).join(", ")}. See --help.`,
  );
}
