/** `rollbook gc`: removes what nothing refers to. */
import type { Command } from "commander";
import { collectGarbage } from "../../store/index.ts";
import { RECORD_GUIDE } from "../../store/record-facts.ts";
import { addCommand } from "../command.ts";
import type { Io } from "../io.ts";
import { type BookFlags, bookRoot, requireBook } from "../open-book.ts";
import { jsonLine, plural } from "../output.ts";

export function addGc(program: Command, io: Io): void {
  addCommand(program, "gc", {
    summary: "remove blobs that nothing refers to",
    description: `Remove blobs that nothing refers to, and fold copies of one blob into one. Safe while others write to the
book; a damaged book is left alone. Rollouts, revisions, batches and everything they rest on stay.`,
    examples: ["rollbook gc --dry-run", "rollbook gc"],
  })
    .option("--dry-run", "only say what would go")
    .action(async (flags: BookFlags & { dryRun?: true; json?: true }) => {
      const root = bookRoot(io, flags);
      requireBook(root);
      const dryRun = flags.dryRun === true;
      const report = await collectGarbage(root, { guide: RECORD_GUIDE, clock: io.clock, dryRun });
      if (flags.json) io.out(jsonLine(report));
      else {
        const gone = `${plural(report.blobsRemoved, "blob")} and ${plural(report.copiesRemoved, "copy")} removed, ${plural(report.bytesFreed, "byte")} freed`;
        io.out(`${dryRun ? "would do: " : ""}${gone}, ${plural(report.blobsKept, "blob")} kept\n`);
      }
    });
}
