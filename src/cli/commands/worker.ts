/** Implements `rollbook worker`: joins a launch from another process. */
import type { Command } from "commander";
import { startWorker, type WorkDone } from "../../book/collect/index.ts";
import { jsonLine, plural } from "../../view/format.ts";
import { addCommand } from "../command.ts";
import { interruptible } from "../interrupted.ts";
import type { Io } from "../io.ts";
import { wholeNumber } from "../options/numbers.ts";
import { addRunOptions, type RunFlags, workRequest } from "../options/run-options.ts";
import { tellFailuresOnce } from "../repeated-failures.ts";
import type { BookFlags } from "../with-book.ts";

interface WorkerFlags extends BookFlags, RunFlags {
  queue: string;
  idle: number;
  stay?: true;
}

export function addWorker(program: Command, io: Io): void {
  const command = addCommand(program, "worker", {
    summary: "join a launch from another process",
    description: `Join a launch from another process: the same queue, the same book, the same agent. It takes only
rollouts of this agent file. It ends when the queue is empty, or after --idle seconds without work for this agent. On
another machine, use a queue on NATS; its credentials come from NATS_USER and NATS_PASSWORD, NATS_TOKEN or NATS_CREDS.`,
    examples: [
      "rollbook worker --book runs --queue runs/queue.db --agent agent.mjs",
      "rollbook worker --book runs --queue nats://127.0.0.1:4222/runs --agent agent.mjs",
    ],
  });
  command
    .option("--idle <s>", "seconds without work before it ends", wholeNumber, 60)
    .option("--stay", "do not end; wait for more work");
  addRunOptions(command, {}).action((flags: WorkerFlags) => work(io, flags));
}

async function work(io: Io, flags: WorkerFlags): Promise<void> {
  const { log, end } = tellFailuresOnce((line) => io.err(`${line}\n`));
  const done = await interruptible(
    (signal) =>
      startWorker({
        ...workRequest(io, flags),
        signal,
        idleMs: flags.stay ? "never" : flags.idle * 1000,
        log,
      }).ended,
  ).finally(end);
  io.out(flags.json ? jsonLine(done) : renderWork(done));
}

/** Makes `3 rollouts begun here; receipts: 2 stored, 1 expired`. */
function renderWork({ begun, receipts }: WorkDone): string {
  const outcomes = Object.entries(receipts).map(([outcome, count]) => `${count} ${outcome}`);
  const given = outcomes.length === 0 ? "" : `; receipts: ${outcomes.join(", ")}`;
  return `${plural(begun, "rollout")} begun here${given}\n`;
}
