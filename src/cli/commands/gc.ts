/** `rollbook gc`: removes what nothing refers to. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { requireBook, requireWritable } from "../../book/open-book.ts";
import { collectOrphans, isReplayStore, listOrphans } from "../../keep/replay/index.ts";
import { collectGarbage, type GcReport } from "../../store/index.ts";
import { jsonLine, plural, printable } from "../../view/format.ts";
import { addCommand } from "../command.ts";
import type { Io } from "../io.ts";
import { type BookFlags, bookRoot } from "../with-book.ts";

export function addGc(program: Command, io: Io): void {
  addCommand(program, "gc", {
    summary: "remove blobs that nothing refers to",
    description: `Remove blobs that nothing refers to, and fold copies of one blob into one. Safe while others write to the
book; a damaged book is left alone. Rollouts, revisions, batches and everything they rest on stay. In the replay
stores below replay/ of the book, segments that a dead writer left are removed.`,
    examples: ["rollbook gc --dry-run", "rollbook gc"],
  })
    .option("--dry-run", "only say what would go")
    .action(async (flags: BookFlags & { dryRun?: true; json?: true }) => {
      const root = bookRoot(io, flags);
      requireBook(root);
      requireWritable(root);
      const dryRun = flags.dryRun === true;
      const report = await collectGarbage(root, { clock: io.clock, dryRun });
      const orphans = await collectReplay(root, dryRun);
      if (flags.json) io.out(jsonLine({ ...report, orphans }));
      else {
        const gone = `${plural(report.blobsRemoved, "blob")} and ${plural(report.copiesRemoved, "copy")} removed, ${plural(report.bytesFreed, "byte")} freed`;
        io.out(`${dryRun ? "would do: " : ""}${gone}, ${plural(report.blobsKept, "blob")} kept\n`);
        if (report.unknownKinds.length > 0) io.err(unknownText(report));
        if (orphans.length > 0)
          io.out(`${dryRun ? "would do: " : ""}${plural(orphans.length, "orphan segment")} removed\n`);
      }
    });
}

function unknownText({ unknownKinds, keepsAll }: GcReport): string {
  const kept = keepsAll
    ? "Not all of them can be searched for references, so only copies are removed"
    : "They stay, with every blob they name";
  return `kinds that this version does not know: ${unknownKinds.map(printable).join(", ")}. ${kept}; a newer rollbook may know them.\n`;
}

/** The orphans of all replay stores of the book, by path. */
async function collectReplay(root: string, dryRun: boolean): Promise<string[]> {
  const folder = join(root, "replay");
  const stores = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  const orphans: string[] = [];
  for (const store of stores.filter(isReplayStore)) {
    const found = dryRun ? listOrphans(store) : await collectOrphans(store);
    orphans.push(...found.map((path) => join(store, path)));
  }
  return orphans;
}
