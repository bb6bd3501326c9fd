/** Implements `rollbook gc`: removes unreferenced blobs and, on request, rollouts that are older than a given age. */
import { type Command, InvalidArgumentError } from "commander";
import { wrongUsage } from "../../../book/decisions/index.ts";
import {
  collectGarbage,
  type ExpireReport,
  expireRollouts,
  openInJournal,
} from "../../../book/maintain/index.ts";
import { keyringOf, loadSigner, trustedSet } from "../../../book/open/index.ts";
import type { GcReport } from "../../../store/index.ts";
import { jsonLine, plural, printable } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { agoMs } from "../../options/rollout-filters.ts";
import { type BookFlags, bookRoot } from "../../with-book.ts";
import { heldText, remainsText } from "../artifact/erase.ts";

export function addGc(program: Command, io: Io): void {
  addCommand(program, "gc", {
    summary: "remove blobs that nothing refers to",
    description: `Remove blobs that nothing refers to, and duplicate copies of blobs. Rollouts, revisions, batches and
everything they refer to stay. It is safe while other processes write to the book. If a blob is damaged and has no
intact copy, gc stops and changes nothing.

--older-than first erases rollouts that ended longer ago, like \`artifact erase\`: a signed tombstone lists what was
erased, and it cannot be undone. Rollouts in batches stay unless --with-batches is given. Rollouts without a time
always stay.`,
    examples: ["rollbook gc --dry-run", "rollbook gc", "rollbook gc --older-than 30d --dry-run"],
  })
    .option("--dry-run", "list what would be removed, and change nothing")
    .option(
      "--older-than <age>",
      "erase rollouts that ended more than this long ago, such as 24h, 30d or 8w (default: erase none)",
      ageMs,
    )
    .option(
      "--with-batches",
      "with --older-than: also erase rollouts that batches hold, and the files of these batches with rows of such rollouts",
    )
    .action(async (flags: GcFlags) => {
      const dryRun = flags.dryRun === true;
      if (flags.withBatches && flags.olderThan === undefined)
        throw wrongUsage("--with-batches has no effect without --older-than");
      const keyring = keyringOf(io);
      const keys = { signer: () => loadSigner(keyring), trustedKeys: trustedSet(keyring) };
      const expired =
        flags.olderThan === undefined
          ? undefined
          : await expireRollouts(bookRoot(io, flags), {
              ...{ beforeMs: io.clock.nowMs() - flags.olderThan, withBatches: flags.withBatches },
              ...{ dryRun, clock: io.clock, ...keys },
            });
      const report = await collectGarbage(bookRoot(io, flags), { clock: io.clock, dryRun, ...keys });
      const { orphans } = report;
      if (expired !== undefined)
        for (const line of await remainsOf(bookRoot(io, flags), expired)) io.err(`${printable(line)}\n`);
      if (flags.json) io.out(jsonLine(expired === undefined ? report : { ...report, expired }));
      else {
        if (expired !== undefined) io.out(expiredText(expired));
        const gone = `${plural(report.blobsRemoved, "blob")} and ${plural(report.copiesRemoved, "copy")} removed, ${plural(report.bytesFreed, "byte")} freed`;
        io.out(`${dryRun ? "would do: " : ""}garbage: ${gone}, ${plural(report.blobsKept, "blob")} kept\n`);
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

interface GcFlags extends BookFlags {
  dryRun?: true;
  olderThan?: number;
  withBatches?: true;
}

function expiredText({ dryRun, erased, bytes, beforeMs, inBatches, undated }: ExpireReport): string {
  const day = new Date(beforeMs).toISOString();
  const kept = [
    ...(inBatches === 0
      ? []
      : [`${plural(inBatches, "old rollout")} that batches hold (--with-batches erases them)`]),
    ...(undated === 0 ? [] : [`${plural(undated, "rollout")} without a time`]),
  ];
  const line = `${dryRun ? "would do: " : ""}${plural(erased, "rollout")} that ended before ${day} erased, ${plural(bytes, "byte")}\n`;
  return kept.length === 0 ? line : `${line}kept: ${kept.join(", ")}\n`;
}

async function remainsOf(root: string, report: ExpireReport): Promise<string[]> {
  if (report.erased === 0) return [];
  const held = report.journal.length === 0 ? [] : await openInJournal(root, report.journal);
  return [...remainsText(report), ...held.map((each) => heldText(each, "them"))];
}

function ageMs(text: string): number {
  const age = agoMs(text);
  if (age !== undefined) return age;
  throw new InvalidArgumentError("It must be an age such as 24h, 30d or 8w.");
}

function unknownText({ unknownKinds, keepsAll }: GcReport): string {
  const kept = keepsAll
    ? "Not all of them can be searched for references, so only copies are removed"
    : "They stay, with every blob they name";
  return `kinds that this version does not know: ${unknownKinds.map(printable).join(", ")}. ${kept}; a newer rollbook may know them.\n`;
}
