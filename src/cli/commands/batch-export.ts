/** `rollbook batch export`: the rows of a batch as one file for a trainer. */
import { type Command, Option } from "commander";
import { resolveBatch } from "../../book/find/resolve.ts";
import { EXPORT_FORMATS, type ExportFormat, exportBatch } from "../../convert/batch/index.ts";
import { readBatch } from "../../keep/batch/index.ts";
import { jsonLine, plural, short, thousands } from "../../view/format.ts";
import { addCommand } from "../command.ts";
import type { Io } from "../io.ts";
import { type BookFlags, withIndexedBook } from "../with-book.ts";

interface ExportFlags extends BookFlags {
  format: ExportFormat;
  out: string;
  json?: true;
}

export function addBatchExport(batch: Command, io: Io): void {
  addCommand(batch, "export", {
    summary: "write the rows of a batch to one file for a trainer",
    description: `Write the rows of a batch to one file: JSON Lines, numpy (npz), safetensors or Parquet. The file names the batch,
its manifest, target, seed and options. An existing file is never overwritten, and a failed export leaves no file behind.`,
    examples: [
      "rollbook batch export b745 --format npz --out batch.npz",
      "rollbook batch export b745 --format parquet --out batch.parquet --json",
    ],
  })
    .argument("<batch>", "digest, or the first digits of it")
    .addOption(
      new Option("--format <format>", "format of the file").choices(EXPORT_FORMATS).makeOptionMandatory(),
    )
    .requiredOption("--out <file>", "file to write; must not exist")
    .action(async (name: string, flags: ExportFlags) => {
      await withIndexedBook(io, flags, async (book, index) => {
        const { format, out } = flags;
        const source = await readBatch((digest) => book.get(digest), resolveBatch(index, name).digest);
        const { bytes } = await exportBatch(source, { format, out });
        const { digest, record } = source;
        const { rows, samples } = record.totals;
        io.out(
          flags.json
            ? jsonLine({ batch: digest, format, out, rows, samples, bytes })
            : `${out}: ${plural(rows, "row")} with ${plural(samples, "sample")} of batch ${short(digest)} (${thousands(bytes)} bytes)\n`,
        );
      });
    });
}
