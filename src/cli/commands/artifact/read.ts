/** Implements `rollbook artifact ls` and `rollbook artifact show`. */
import { type Command, Option } from "commander";
import { RollbookError } from "../../../base/index.ts";
import type { OpenBook } from "../../../book/open/index.ts";
import {
  exportRollout,
  listRevisions,
  listRollouts,
  RECORD_ROLLOUTS,
  type RolloutDetails,
  requireExperiment,
  showRollout,
  taskFailures,
  transcriptOf,
  withFeedback,
} from "../../../book/rollouts/index.ts";
import { newestReleases } from "../../../book/serve/index.ts";
import { jsonLine, prettyJson } from "../../../view/format.ts";
import {
  renderArtifacts,
  renderRecords,
  renderRevisions,
  revisionRow,
} from "../../../view/rollouts/artifact-view.ts";
import { renderCalls, renderTranscript } from "../../../view/rollouts/transcript-view.ts";
import { addCommand } from "../../command.ts";
import { hasColor, type Io } from "../../io.ts";
import { addRolloutFilters, rolloutQuery } from "../../options/rollout-filters.ts";
import { type BookFlags, withBook } from "../../with-book.ts";

interface ListFlags extends BookFlags {
  family?: string;
  group?: string;
  task?: string;
  exp?: string;
  model?: string;
  ending?: string;
  minScore?: number;
  since?: string;
  limit?: number;
  revisions?: true;
}

export function addList(artifact: Command, io: Io): void {
  const command = addCommand(artifact, "ls", {
    summary: "list the rollouts of the book, the latest first",
    description: `List the rollouts of the book, the latest first.

With --revisions it lists policies. KIND is policy (trained or imported), router (a policy as a gateway serves it, with
table, floor and exploration), agent (an agent file), client (the client named the model itself) or log (the unknown
policy behind an imported log). RELEASED marks the policy of each family that \`router.checkpoint: released\` serves.`,
    examples: [
      "rollbook artifact ls --limit 20",
      "rollbook artifact ls --ending failed --since 7d --json",
      "rollbook artifact ls --since 1d --min-score 0.5",
    ],
  });
  addRolloutFilters(command)
    .option("--revisions", "list the policy revisions of the book instead")
    .action(async (flags: ListFlags) => {
      if (flags.revisions) return printRevisions(io, flags);
      const query = rolloutQuery(flags, io.clock);
      const found = await withBook(io, flags, async (book) => {
        if (query.experiment !== undefined) requireExperiment(await book.index(), query.experiment);
        return withFeedback(book, await listRollouts(book, query));
      });
      if (flags.json) for (const each of found) io.out(jsonLine(each));
      else if (found.length > 0) io.out(renderArtifacts(found));
      else
        io.err(
          Object.values(query).every((each) => each === undefined)
            ? `the book holds no rollout yet. ${RECORD_ROLLOUTS}\n`
            : "no rollout matches these filters. `rollbook artifact ls` without filters lists all\n",
        );
    });
}

async function printRevisions(io: Io, flags: ListFlags): Promise<void> {
  const idle = (["group", "task", "ending"] as const).find((name) => flags[name] !== undefined);
  if (idle !== undefined)
    throw new RollbookError(
      "wrong-usage",
      { option: idle },
      `--${idle} has no effect with --revisions. See --help.`,
    );
  const { found, released } = await withBook(io, flags, async (book) => ({
    found: await listRevisions(book, flags),
    released: await newestReleases(book),
  }));
  if (flags.json) for (const each of found) io.out(jsonLine(revisionRow(each, released)));
  else if (found.length > 0) io.out(renderRevisions(found, released));
  else io.err("the book holds no such policy revision\n");
}

interface ShowFlags extends BookFlags {
  calls?: true;
  raw?: true;
}

export function addShow(artifact: Command, io: Io): void {
  addCommand(artifact, "show", {
    summary: "show one rollout: its conversation, what it cost, how it ended",
    description: `Show one rollout: its conversation, what it cost, how it ended. A message that several calls share is
shown once. --json prints the form that \`artifact import\` reads: one JSON object, or several if the rollout was run more than once.`,
    examples: [
      "rollbook artifact show r-0001",
      "rollbook artifact show r-0001 --calls",
      "rollbook artifact show r-0001 --json > r-0001.json",
    ],
  })
    .argument("<artifact>", "rollout id, digest, or at least the first 4 characters of one")
    .addOption(new Option("--calls", "a line per model call: tokens, cost, latency, status").conflicts("raw"))
    .option("--raw", "the messages of every call as they were recorded, in JSON")
    .action(async (name: string, flags: ShowFlags) => {
      io.out(await withBook(io, flags, (book) => shown(book, name, { io, flags })));
    });
}

async function shown(
  book: OpenBook,
  name: string,
  { io, flags }: { io: Io; flags: ShowFlags },
): Promise<string> {
  const json = io.terminal ? prettyJson : jsonLine;
  if (flags.raw) {
    const [first] = await exportRollout(book, name);
    return flags.json ? json(first!.calls) : prettyJson(first!.calls);
  }
  if (flags.json && !flags.calls) {
    const all = await exportRollout(book, name);
    return all.map(json).join("");
  }
  const details = await showRollout(book, name);
  const transcript = await transcriptOf(book, details);
  if (flags.calls) return flags.json ? transcript.calls.map(json).join("") : renderCalls(transcript.calls);
  return `${renderTranscript(transcript, { color: hasColor(io) })}\n${renderRecords(details, await quarantineOf(book, details))}`;
}

/** Only the digest of a task is indexed. To look for an id, all rollouts of a large book would be listed. */
async function quarantineOf(book: OpenBook, { content }: RolloutDetails): Promise<string[]> {
  return content.task.digest === undefined ? [] : taskFailures(book, content);
}
