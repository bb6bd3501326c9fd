/** Implements `rollbook artifact erase`: removes the bytes of rollouts and leaves a tombstone. */
import type { Command } from "commander";
import { type Digest, RollbookError } from "../../../base/index.ts";
import { eraseRollouts, type HeldJournal, openInJournal } from "../../../book/maintain/index.ts";
import { keyringOf, loadSigner, trustedSet } from "../../../book/open/index.ts";
import type { EraseReport } from "../../../keep/erase/index.ts";
import { jsonLine, plural, printable, short } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { type BookFlags, bookRoot } from "../../with-book.ts";

interface EraseFlags extends BookFlags {
  reason: string;
  by: string;
  withBatches?: true;
  yes?: true;
}

export function addErase(artifact: Command, io: Io): void {
  addCommand(artifact, "erase", {
    summary: "erase rollouts permanently and leave a tombstone",
    description: `Erase rollouts permanently: content, envelopes, calls, messages, media, columns, events, feedback and
tasks. Parts that other records of the book need stay. A batch that considered an erased rollout can no longer be
assembled again for a check. A sealed tombstone lists every erased digest with the reason,
and \`verify\` then reports erased instead of missing. Without --yes the command lists what it would erase, and
any reason why it would refuse, and exits with 1. After a crash, run it again.`,
    examples: ['rollbook artifact erase r-0012 --reason "privacy request 17" --yes'],
  })
    .argument("<rollout...>", "rollout ids, digests, or at least the first 4 digits of digests")
    .requiredOption("--reason <text>", "the reason; it stays in the book, so leave names out")
    .option("--by <id>", "name of the person or program that erases", "owner")
    .option("--with-batches", "also erase the shards of batches that hold rows of the rollouts")
    .option("--yes", "erase; without it nothing is removed")
    .action((names: string[], flags: EraseFlags) => runErase(io, names, flags));
}

async function runErase(io: Io, names: readonly string[], flags: EraseFlags): Promise<void> {
  const { reason, by, withBatches, yes } = flags;
  const root = bookRoot(io, flags);
  const report = await eraseRollouts(root, names, {
    ...{ reason, by, withBatches, confirmed: yes, clock: io.clock },
    ...{ signer: () => loadSigner(keyringOf(io)), trustedKeys: trustedSet(keyringOf(io)) },
  });
  io.out(flags.json ? jsonLine(report) : renderErased(report));
  const held = report.journal.length === 0 ? [] : await openInJournal(root, report.journal);
  const notes = report.dryRun ? held.map((each) => heldText(each)) : [];
  for (const line of [...remainsText(report), ...notes]) io.err(`${printable(line)}\n`);
  if (report.dryRun)
    throw new RollbookError(
      "not-confirmed",
      { rollouts: report.rollouts },
      report.refusals.length === 0
        ? "nothing was erased. To erase, run the command again with --yes. This cannot be undone."
        : `nothing was erased, and with --yes it would be refused: ${report.refusals.map(({ message }) => message).join(" ")}`,
    );
  if (held.length > 0)
    throw new RollbookError(
      "journal-holds",
      { journal: report.journal, open: held.flatMap(({ open }) => open) },
      `erased from the book, but not from a journal. ${held.map((each) => heldText(each)).join(" ")} Remove them:${held
        .flatMap(closeSteps)
        .map((step) => `\n  - ${step}`)
        .join("")}\n  - run this command again`,
    );
}

/** Maximum number of open rollouts that a text lists. */
const MOST_LISTED = 3;

export function heldText({ path, open }: HeldJournal, whose = "it"): string {
  const more = open.length > MOST_LISTED ? ", …" : "";
  const why =
    open.length === 0
      ? "until its gateway starts again"
      : `while ${plural(open.length, "rollout")} of its journal ${open.length === 1 ? "is" : "are"} open (${open.slice(0, MOST_LISTED).join(", ")}${more})`;
  return `${path} holds calls of ${whose} ${why}.`;
}

function closeSteps({ gateway, open: [first, ...others] }: HeldJournal): string[] {
  return [
    `start the gateway again under its name, ${gateway}${first === undefined ? "" : ", if it is stopped"}: \`rollbook gateway --config gateway.yaml --worker ${gateway}\``,
    ...(first === undefined
      ? []
      : [
          `close the open ${others.length === 0 ? "rollout" : "rollouts, each with its id"}: \`curl http://127.0.0.1:8790/v1/rollouts/${encodeURIComponent(first)}/close -d '{}'\``,
        ]),
  ];
}

function renderErased({ dryRun, rollouts, records, blobs, batches, bytes, tombstone }: EraseReport): string {
  const what = `${rollouts.join(", ")}: ${plural(records.length, "record")} and ${plural(blobs.length, "blob")}, ${plural(bytes, "byte")}`;
  const shards = batches.length === 0 ? "" : `, with shards of ${plural(batches.length, "batch")}`;
  const end = tombstone === undefined ? "" : `; tombstone ${short(tombstone)}`;
  return `${printable(`${dryRun ? "would erase" : "erased"} ${what}${shards}${end}`)}\n`;
}

function listed(digests: readonly Digest[]): string {
  const more = digests.length > 5 ? ` and ${digests.length - 5} more (--json lists all)` : "";
  return `${digests.slice(0, 5).map(short).join(", ")}${more}`;
}

export function remainsText({
  batchesKept,
  tasksKept,
  torn,
  replay,
}: Pick<EraseReport, "batchesKept" | "tasksKept" | "torn" | "replay">): string[] {
  return [
    ...(batchesKept.length === 0
      ? []
      : [
          `${plural(batchesKept.length, "batch")} excluded these rollouts: ${batchesKept.length === 1 ? "its" : "their"} rows stay readable, but \`batch verify\` can no longer assemble ${batchesKept.length === 1 ? "it" : "them"} again: ${listed(batchesKept)}`,
        ]),
    ...(tasksKept.length === 0
      ? []
      : [
          `kept ${plural(tasksKept.length, "task")} with prompts, because other records of the book need them: ${listed(tasksKept)}`,
        ]),
    ...(torn.length === 0
      ? []
      : [
          `torn/ holds ${plural(torn.length, "piece")} of packs from crashes, which may hold text of it: remove them yourself`,
        ]),
    ...(replay.length === 0
      ? []
      : [
          `replay stores of the book may hold its decisions and tokens and were not changed: write them again (${replay.join(", ")})`,
        ]),
  ];
}
