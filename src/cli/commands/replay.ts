/** Implements `rollbook replay`: rollouts as Zarr tables that any language reads, with a dense view for training. */
import { type Command, Option } from "commander";
import { given, RollbookError } from "../../base/index.ts";
import {
  compactReplay,
  describeReplay,
  extendReplay,
  gitCommitOf,
  validateReplay,
  writeReplay,
} from "../../book/replay/index.ts";
import type { Layout, ReplayWriter, ReturnSemantics } from "../../keep/replay/index.ts";
import { jsonLine, plural } from "../../view/format.ts";
import { admittedJson, renderEveryAdmitted } from "../../view/ledger-view.ts";
import { renderErrors, renderInfo, renderWritten } from "../../view/replay-view.ts";
import { addCommand, addGroup } from "../command.ts";
import type { Io } from "../io.ts";
import { positiveWhole, share, wholeNumber } from "../options/numbers.ts";
import { type BookFlags, withBook } from "../with-book.ts";

const STORE = ".rollbook/replay/router";

export function addReplay(program: Command, io: Io): void {
  const replay = addGroup(program, "replay", {
    summary: "write, append, validate and compact Zarr stores of rollouts",
    examples: [`rollbook replay write ${STORE} --family router`, `rollbook replay validate ${STORE}`],
  });
  addWrite(replay, io);
  addAppend(replay, io);
  addInfo(replay, io);
  addValidate(replay, io);
  addCompact(replay, io);
}

type LayoutFlags = BookFlags & Layout;

interface WriteFlags extends LayoutFlags {
  family?: string[];
  artifact?: string[];
  feedback?: string;
  /** Applies only to a new store. */
  returns?: ReturnSemantics;
  gamma?: number;
}

function addWrite(replay: Command, io: Io): void {
  const command = addCommand(replay, "write", {
    summary: "write the admitted rollouts of the book to a new store",
    description: `Write the admitted rollouts of the book to a new Zarr store. Most users need no option.

The store holds chains (the choices of one policy family in one rollout), their steps, all candidates, tokens and lineage. The table q_h
has one row per step, with its return: the sum of the rewards of this and all later steps, NaN if a reward is missing.`,
    examples: [`rollbook replay write ${STORE} --family router`],
  }).argument("<store>", "a new directory, or s3://bucket/prefix");
  sourceOptions(layoutOptions(command))
    .addOption(
      new Option(
        "--returns <semantics>",
        "the reward of a step in q_h. reward-to-go: its recorded reward. root-gain: (error before the step - error after it) / error at the start, for agents that record an error (a distance from the goal) with each step (default: root-gain if all rollouts record errors, else reward-to-go)",
      ).choices(["root-gain", "reward-to-go"]),
    )
    .option("--gamma <number>", "discount of later rewards, per step, 0 … 1", share, 1)
    .action((root: string, flags: WriteFlags, self: Command) =>
      write(io, { root, flags, self, fresh: true }),
    );
}

function addAppend(replay: Command, io: Io): void {
  const command = addCommand(replay, "append", {
    summary: "add rollouts of the book to a store",
    description: `Add rollouts of the book to a store, as segments of their own. Rollouts that the store already has
are skipped. An append is atomic: readers see the store before or after it, and a killed append changes nothing.`,
    examples: [`rollbook replay append ${STORE} --family router`],
  }).argument("<store>", "the directory of the store, or s3://bucket/prefix");
  sourceOptions(layoutOptions(command)).action((root: string, flags: WriteFlags, self: Command) =>
    write(io, { root, flags, self, fresh: false }),
  );
}

function sourceOptions(command: Command): Command {
  return command
    .option("--family <family...>", "only choices by policies of these families (default: all)")
    .option("--artifact <id...>", "only these artifacts (default: all of the book)")
    .option("--feedback <name>", "where a reward is missing, use late feedback of this name (default: none)");
}

function layoutOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--codec <codec>", "how chunks are compressed")
        .choices(["none", "zstd", "gzip"])
        .default("none"),
    )
    .option(
      "--chunk-bytes <n>",
      "bytes of a chunk before compression (default: about 1 MB, or 64 KiB if compressed)",
      positiveWhole,
    )
    .option(
      "--shard-chunks <n>",
      "chunks per stored object (default: 1; 16 with compression)",
      positiveWhole,
    );
}

async function write(
  io: Io,
  { root, flags, self, fresh }: { root: string; flags: WriteFlags; self: Command; fresh: boolean },
): Promise<void> {
  const { family, artifact, feedback, returns, gamma } = flags;
  const request = {
    ...{ root, families: family, artifacts: artifact, feedback },
    layout: layoutOf(flags),
    writer: writerOf(io, self),
    onProgress: (done: number, total: number) => progress(io, "rollout", done, total),
  };
  const { admitted, withoutErrors, ...result } = await withBook(io, flags, (book) =>
    fresh ? writeReplay(book, { ...request, returns, gamma }) : extendReplay(book, request),
  );
  io.out(
    flags.json
      ? jsonLine({ store: root, ...result, admitted: admitted.map(admittedJson) })
      : renderWritten(root, result),
  );
  if (!flags.json) io.err(renderEveryAdmitted(admitted));
  if (withoutErrors > 0)
    io.err(
      `warning: in ${plural(withoutErrors, "chain")}, a step has no recorded errors, so root-gain returns are NaN. ${fresh ? "Use --returns reward-to-go" : "Write another store with --returns reward-to-go"}.\n`,
    );
}

function addInfo(replay: Command, io: Io): void {
  addCommand(replay, "info", {
    summary: "print what a store holds",
    examples: [`rollbook replay info ${STORE}`],
    book: false,
  })
    .argument("<store>", "the directory of the store, or s3://bucket/prefix")
    .action(async (root: string, flags: BookFlags) => {
      const described = await describeReplay(root);
      io.out(flags.json ? jsonLine({ store: root, ...described }) : renderInfo(root, described));
    });
}

function addValidate(replay: Command, io: Io): void {
  addCommand(replay, "validate", {
    summary: "check every byte and every rule of a store",
    description: `Check every byte and every rule of a store: digests, references, masks, probabilities, returns,
endings, splits; the table q_h is computed again from the steps and compared bit for bit. All errors are listed, each
with array, row and reason.`,
    examples: [`rollbook replay validate ${STORE}`],
    book: false,
  })
    .argument("<store>", "the directory of the store, or s3://bucket/prefix")
    .option("--limit <n>", "list at most this many errors; all are counted", wholeNumber, 1000)
    .action(async (root: string, flags: { limit: number; json?: true }) => {
      const report = await validateReplay(root, {
        limit: flags.limit,
        onProgress: ({ segments, of }) => progress(io, "segment", segments, of),
      });
      io.out(flags.json ? jsonLine(report) : renderErrors(report));
      if (report.valid) return;
      throw new RollbookError(
        "replay-invalid",
        { root, errors: report.count },
        `${root} has ${plural(report.count, "error")}. Restore it from a copy, or write it again from its rollouts.`,
      );
    });
}

function addCompact(replay: Command, io: Io): void {
  const command = addCommand(replay, "compact", {
    summary: "write a store as one plain Zarr tree",
    description: `Write a store as one plain Zarr tree in a new directory. zarr-python, xarray and zarrita can open it
without Rollbook. The store itself does not change.`,
    examples: [`rollbook replay compact ${STORE} router.zarr`],
    book: false,
  })
    .argument("<store>", "the directory of the store, or s3://bucket/prefix")
    .argument("<out>", "a new directory, or s3://bucket/prefix");
  layoutOptions(command).action(async (from: string, to: string, flags: LayoutFlags, self: Command) => {
    const manifest = await compactReplay({
      from,
      to,
      clock: io.clock,
      layout: layoutOf(flags),
      writer: writerOf(io, self),
      onProgress: ({ segments, of }) => progress(io, "segment", segments, of),
    });
    io.out(flags.json ? jsonLine({ store: to, manifest }) : renderInfo(to, { manifest, orphans: [] }));
  });
}

function layoutOf({ codec, chunkBytes, shardChunks }: LayoutFlags): Layout {
  return given({ codec, chunkBytes, shardChunks });
}

/** Writer facts for the manifest: the command line as typed, the versions, and the commit of the work tree. */
function writerOf(io: Io, self: Command): Partial<ReplayWriter> {
  let program = self;
  while (program.parent !== null) program = program.parent;
  const gitCommit = gitCommitOf(io);
  return {
    versions: { rollbook: program.version() ?? "unknown", node: process.versions.node },
    invocation: ["rollbook", ...(program as Command & { rawArgs: string[] }).rawArgs],
    ...(gitCommit === undefined ? {} : { gitCommit }),
  };
}

function progress(io: Io, what: string, done: number, total: number): void {
  if (!io.live || (done % 100 !== 0 && done !== total)) return;
  io.err(`\r${what} ${done} of ${total}${done === total ? "\n" : ""}`);
}
