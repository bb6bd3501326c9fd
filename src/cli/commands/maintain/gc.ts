/** `rollbook gc`: removes what nothing refers to. */
import type { Command } from "commander";
import { collectGarbage } from "../../../book/maintain/index.ts";
import { keyringOf, loadSigner, trustedSet } from "../../../book/open/index.ts";
import type { GcReport } from "../../../store/index.ts";
import { jsonLine, plural, printable } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { type BookFlags, bookRoot } from "../../with-book.ts";

export function addGc(program: Command, io: Io): void {
  addCommand(program, "gc", {
    summary: "remove blobs that nothing refers to",
    description: `Remove blobs that nothing refers to, and fold copies of one blob into one. Safe while others write to the
book; a damaged book is left alone. Rollouts, revisions, batches and everything they rest on stay. In the replay
stores below replay/ of the book, segments that a dead writer left are removed.`,
    examples: ["rollbook gc --dry-run", "rollbook gc"],
  })
    .option("--dry-run", "only say what would go")
    .action(async (flags: BookFlags & { dryRun?: true }) => {
      const dryRun = flags.dryRun === true;
      const keyring = keyringOf(io);
      const keys = { signer: () => loadSigner(keyring), trustedKeys: trustedSet(keyring) };
      const report = await collectGarbage(bookRoot(io, flags), { clock: io.clock, dryRun, ...keys });
      const { orphans } = report;
      if (flags.json) io.out(jsonLine(report));
      else {
        const gone = `${plural(report.blobsRemoved, "blob")} and ${plural(report.copiesRemoved, "copy")} removed, ${plural(report.bytesFreed, "byte")} freed`;
        io.out(`${dryRun ? "would do: " : ""}${gone}, ${plural(report.blobsKept, "blob")} kept\n`);
        if (report.headsFolded > 0)
          io.out(
            `${dryRun ? "would do: " : ""}${plural(report.headsFolded, "signed head")} folded into one\n`,
          );
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
