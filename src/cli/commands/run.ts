/** Implements `rollbook run`: the training loop as one durable process. */
import { dirname } from "node:path";
import type { Command } from "commander";
import { isRollbookError, RollbookError } from "../../base/index.ts";
import {
  type LoopConfig,
  loopStatus,
  parseLoopConfig,
  runLoop,
  statusOf,
  stopRun,
  windowStatus,
} from "../../loop/index.ts";
import { readText } from "../../store/index.ts";
import { jsonLine, plural, thousands } from "../../view/format.ts";
import { renderLoop, renderLoopProgress, renderTransition } from "../../view/runs/loop-view.ts";
import { addCommand, addGroup } from "../command.ts";
import { interruptible } from "../interrupted.ts";
import type { Io } from "../io.ts";
import { positiveWhole } from "../options/numbers.ts";
import { identityFrom, METRICS_OPTION } from "../options/run-options.ts";
import { tellFailuresOnce } from "../repeated-failures.ts";
import { type BookFlags, bookRoot } from "../with-book.ts";

interface LoopFlags extends BookFlags {
  config: string;
  follow?: string;
  metrics?: string;
  resume?: true;
  timeout: number;
  json?: true;
}

type RunHow = Parameters<typeof runLoop>[0]["how"];

/** Error codes of a run that did not start work, and of errors that already contain the next step. */
const REFUSALS: readonly string[] = [
  ...["run-exists", "run-not-begun", "no-book", "run-busy", "loop-changed", "read-only"],
  ...["window-failing", "window-empty", "too-few-tasks", "other-release", "no-bounds"],
];

const FOLLOW = [
  "--follow <dir>",
  "repeat an earlier asynchronous run. The policies of such a run (`mode: asynchronous`) depend on timing, so each window here collects with the policy that the same window had there. DIR is the book that holds the earlier run. Both runs have the same name (`run:` in the configuration)",
] as const;

const CONFIG_HELP =
  "the loop's configuration in YAML; `rollbook init --example` writes one, docs/loop.md explains it";

const BOOK_HELP =
  "the book's directory (default: `book:` of the configuration, else $ROLLBOOK_BOOK, else .rollbook)";

export function addRun(program: Command, io: Io): void {
  const group = addGroup(program, "run", {
    summary: "run the training loop: collect, train, judge, release, window after window",
    examples: ["rollbook run start --config loop.yaml", "rollbook run status --config loop.yaml"],
  });
  addCommand(group, "start", {
    book: BOOK_HELP,
    summary: "begin a run and work until its last window has ended",
    description: `Begin a run and work until its last window has ended. A window collects rollouts, seals a batch of them, trains a
policy, and judges it on rows it has not seen. If the gate passes, the window releases the new policy; else it keeps the
old one. The first window collects with the behaviour policy of the configuration (\`behaviour:\`), each later window
with the released policy. The gate compares with the released policy; before any release, with the behaviour policy.

In a run named first, the rollouts of window 2 are the experiment first-w2, and the policy trained in window 1 is the
revision first-w1. After a kill at any moment, \`rollbook run resume\` continues the run. If there is no book or no
signing key yet, the command makes one and says so.

Required keys of the configuration: world (kind: simulator, agent or tokens, with its own keys), windows, rollouts (of a window),
and learner or learners. Some defaults: run loop, behaviour uniform, samples 1, workers 4, exploration.collect 0.2, exploration.serve 0.02,
split.shares [0.6, 0.2, 0.2], gate.alpha 0.05, seed 0. docs/reference/settings.md lists all keys.`,
    examples: ["rollbook run start --config loop.yaml", "rollbook run start --config loop.yaml --resume"],
  })
    .requiredOption("--config <file>", CONFIG_HELP)
    .option("--resume", "continue the run if it has begun, for a supervisor that repeats one command")
    .option(...FOLLOW)
    .option(...METRICS_OPTION)
    .action((flags: LoopFlags) => work(io, flags, flags.resume === true ? "start-or-resume" : "start"));
  addCommand(group, "resume", {
    book: BOOK_HELP,
    summary: "continue a run that was stopped, killed or failed",
    description: `Continue a run from its last sealed record. A run without a record has not begun: it is refused, and
\`rollbook run start\` begins it. The configuration must be the one that the run began with. Only \`book\`,
\`workers\`, \`queue\`, \`gateways\` and \`gatewayTokenEnv\` may differ, and some keys of \`kind: tokens\` (docs/reference/loop.md lists them).
To extend a finished run, raise \`windows\` and resume.

The command runs the rollouts that have no result yet, including those that were interrupted. A rollout that failed in
all its attempts has a result, and does not run again.`,
    examples: ["rollbook run resume --config loop.yaml"],
  })
    .requiredOption("--config <file>", CONFIG_HELP)
    .option(...FOLLOW)
    .option(...METRICS_OPTION)
    .action((flags: LoopFlags) => work(io, flags, "resume"));
  addCommand(group, "status", {
    book: BOOK_HELP,
    summary: "print the state of a run",
    description: `Print the state of a run, one line per window. COLLECTED BY is the policy that collected the window, SERVES the policy
that serves after it. STATE is released if the gate passed the new policy, and kept if it refused: the old policy serves on.
The column "NEW POLICY, REWARD" has the reward of the new policy, estimated from the log, with its 95 % interval. The lines \`checkpoint of …\`
name the folders that \`gate\`, \`evaluate\` and \`route ask\` take as --checkpoint: those of the last trained and of the serving policy.
--json has those of all windows.

Simulated tasks have three more columns. VALUE BEFORE is the exact expected reward of the policy that collected, VALUE AFTER that of
the policy that serves, OPTIMUM that of the best possible policy.`,
    examples: ["rollbook run status --config loop.yaml", "rollbook run status --config loop.yaml --json"],
  })
    .requiredOption("--config <file>", CONFIG_HELP)
    .action((flags: LoopFlags) => status(io, flags));
  addCommand(group, "report", {
    book: BOOK_HELP,
    summary: "write the report of a run as one HTML file",
    description: `Write the report of a run as one HTML file: reward by window, policies at the gate, cost and quality,
the loss ledger and the lineage, as charts and as tables. The file needs no network and runs no script. It covers the
windows that have ended, and is made from the sealed records of the book.`,
    examples: ["rollbook run report --config loop.yaml --out report.html"],
  })
    .requiredOption("--config <file>", CONFIG_HELP)
    .requiredOption("--out <file>", "the HTML file; never overwritten")
    .action((flags: LoopFlags & { out: string }) => report(io, flags));
  addCommand(group, "stop", {
    book: BOOK_HELP,
    summary: "ask the process of a run to stop, and wait until it has",
    description: `Ask the process of a run to stop, and wait until it has. It finishes its current stage. While it
collects, it starts no more rollouts and waits for those that run. The process then exits with 0, and \`rollbook run resume\`
continues the run.`,
    examples: ["rollbook run stop --config loop.yaml"],
  })
    .requiredOption("--config <file>", CONFIG_HELP)
    .option("--timeout <s>", "seconds to wait", positiveWhole, 60)
    .action((flags: LoopFlags) => stop(io, flags));
}

async function work(io: Io, flags: LoopFlags, how: RunHow): Promise<void> {
  const { config, book } = settingsOf(io, flags);
  const { follow, metrics } = flags;
  const clear = io.live ? "\r\u001b[K" : "";
  let begun = how === "resume";
  const { log, end } = tellFailuresOnce((line) => io.err(`${clear}${line}\n`));
  let asked: AbortSignal | undefined;
  const ran = interruptible(async (signal) => {
    asked = signal;
    return runLoop({
      ...{ config, book, how, signal, clock: io.clock, identity: () => identityFrom(io), follow, metrics },
      log,
      onWindow(window) {
        begun = true;
        io.err(`${clear}${renderTransition(windowStatus(window), config.windows)}\n`);
      },
      ...(io.live
        ? {
            onProgress: (window, progress) =>
              io.err(`${clear}${renderLoopProgress({ window, ...progress }, config.windows)}`),
          }
        : {}),
    });
  });
  const { state, done } = await ran.finally(end).catch((error: unknown) => {
    if (isRollbookError(error) && REFUSALS.includes(error.code)) throw error;
    const next = begun
      ? `The run is kept as it stands. Continue it with \`rollbook run resume ${config.options}\` once the cause is gone.`
      : "No step was recorded. Repeat the command once the cause is gone.";
    if (!isRollbookError(error)) {
      io.err(`${clear}${next}\n`);
      throw error;
    }
    const { code, fields, message, cause } = error;
    throw new RollbookError(code, fields, `${message} ${next}`, { cause });
  });
  const facts = statusOf(state, { book, config });
  io.out(flags.json ? jsonLine(facts) : renderLoop(facts, config));
  if (done) return;
  const again = facts.windows.length === 0 ? "start" : "resume";
  const stopped = `run ${config.run}: stopped after ${facts.ended} of ${plural(config.windows, "window")}; continue with \`rollbook run ${again} ${config.options}\``;
  if (!isCancelled(asked)) return io.err(`${clear}${stopped}\n`);
  throw new RollbookError(
    "run-stopped",
    { run: config.run, ended: facts.ended, windows: config.windows },
    `${stopped}.`,
  );
}

/** Ctrl-C cancels the command, so the commands after it must not run. `run stop` and SIGTERM end it as planned: a
 *  supervisor that restarts a failed process must not undo the stop. */
function isCancelled(asked: AbortSignal | undefined): boolean {
  return asked?.aborted === true && (asked.reason as Error).message === "SIGINT";
}

async function status(io: Io, flags: LoopFlags): Promise<void> {
  const { config, book } = settingsOf(io, flags);
  const facts = await loopStatus(book, config);
  io.out(flags.json ? jsonLine(facts) : renderLoop(facts, config));
}

async function report(io: Io, flags: LoopFlags & { out: string }): Promise<void> {
  const { config, book } = settingsOf(io, flags);
  // Loaded on demand: no other command draws charts.
  const { reportRun, writeReport } = await import("../../loop/report/index.ts");
  const facts = await reportRun(book, config);
  const { bytes } = writeReport(flags.out, facts);
  const windows = facts.windows.length;
  io.out(
    flags.json
      ? jsonLine({ run: config.run, out: flags.out, windows, bytes })
      : `${flags.out}: ${plural(windows, "window")}, ${thousands(bytes)} bytes\n`,
  );
}

async function stop(io: Io, flags: LoopFlags): Promise<void> {
  const { config, book } = settingsOf(io, flags);
  const { run } = config;
  const stopped = await stopRun(book, run, { timeoutMs: flags.timeout * 1000 });
  io.out(
    flags.json ? jsonLine({ run, book, stopped }) : `${run}: ${stopped ? "stopped" : "no process runs it"}\n`,
  );
}

/** The book is --book, else the one in the file, else the default. */
function settingsOf(io: Io, flags: LoopFlags): { config: LoopConfig; book: string } {
  const remedy = "Name the loop's configuration with --config";
  const text = readText(flags.config, "the configuration of a loop", { code: "no-config", remedy });
  const parsed = parseLoopConfig(text, flags.config, dirname(flags.config));
  // The commands that messages suggest must find the same book.
  const options = flags.book === undefined ? parsed.options : `${parsed.options} --book ${flags.book}`;
  return { config: { ...parsed, options }, book: flags.book ?? parsed.book ?? bookRoot(io, flags) };
}
