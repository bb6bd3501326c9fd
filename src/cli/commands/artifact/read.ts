/** `rollbook artifact ls` and `rollbook artifact show`. */
import { type Command, Option } from "commander";
import { RollbookError } from "../../../base/index.ts";
import { exportRollout, listRevisions, listRollouts, showRollout } from "../../../book/rollouts/index.ts";
import { failureOwner } from "../../../contract/index.ts";
import {
  renderArtifact,
  renderArtifacts,
  renderRevisions,
  revisionRow,
} from "../../../view/artifact-view.ts";
import { jsonLine } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { wholeNumber } from "../../options/numbers.ts";
import { type BookFlags, withBook } from "../../with-book.ts";

/** As `artifact ls` prints them; `failed` stands for a failure of any owner. */
const ENDINGS = [
  "terminal",
  "truncated",
  "cancelled",
  "failed",
  ...failureOwner.options.map((owner) => `failed-${owner}`),
];

interface ListFlags extends BookFlags {
  family?: string;
  group?: string;
  task?: string;
  ending?: string;
  limit?: number;
  revisions?: true;
}

export function addList(artifact: Command, io: Io): void {
  addCommand(artifact, "ls", {
    summary: "list the rollouts of the book",
    examples: ["rollbook artifact ls", "rollbook artifact ls --ending failed --json"],
  })
    .option("--family <family>", "only rollouts with a stream of this policy family")
    .option("--group <group>", "only this group")
    .option("--task <task>", "only this task")
    .addOption(new Option("--ending <ending>", "only this ending").choices(ENDINGS))
    .option("--limit <n>", "at most this many", wholeNumber)
    .option("--revisions", "list the policy revisions of the book instead")
    .action(async (flags: ListFlags) => {
      if (flags.revisions) return printRevisions(io, flags);
      const { family, group, task, ending, limit } = flags;
      const found = await withBook(io, flags, (book) => listRollouts(book, flags));
      if (flags.json) for (const each of found) io.out(jsonLine(each));
      else if (found.length > 0) io.out(renderArtifacts(found));
      else
        io.err(
          [family, group, task, ending, limit].every((each) => each === undefined)
            ? "the book holds no rollout yet: `rollbook artifact import` brings some\n"
            : "no rollout fits these filters\n",
        );
    });
}

async function printRevisions(io: Io, flags: ListFlags): Promise<void> {
  const idle = (["group", "task", "ending"] as const).find((name) => flags[name] !== undefined);
  if (idle !== undefined)
    throw new RollbookError(
      "wrong-usage",
      { option: idle },
      `--${idle} says nothing to --revisions. See --help.`,
    );
  const found = await withBook(io, flags, (book) => listRevisions(book, flags));
  if (flags.json) for (const each of found) io.out(jsonLine(revisionRow(each)));
  else if (found.length > 0) io.out(renderRevisions(found));
  else io.err("the book holds no such policy revision\n");
}

export function addShow(artifact: Command, io: Io): void {
  addCommand(artifact, "show", {
    summary: "show one rollout",
    description: `Show one rollout. With --json it is printed in the exchange form, which import reads back: one line for each
envelope, so a rollout that was run twice gives two.`,
    examples: ["rollbook artifact show r-0001", "rollbook artifact show r-0001 --json > r-0001.json"],
  })
    .argument("<artifact>", "rollout id, digest, or the first digits of one")
    .action(async (name: string, flags: BookFlags) => {
      const text = await withBook(io, flags, async (book) =>
        flags.json
          ? (await exportRollout(book, name)).map(jsonLine).join("")
          : renderArtifact(await showRollout(book, name)),
      );
      io.out(text);
    });
}
