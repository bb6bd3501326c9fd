/** `rollbook worker`: joins a launch from another process. */
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import type { Command } from "commander";
import { parseId, RollbookError, rngFrom } from "../../base/index.ts";
import { openSqliteQueue } from "../../collect/queue/sqlite-queue.ts";
import { loadAgent, makeDesk, openSealedIndex, startWorker } from "../../collect/rollout/index.ts";
import { jsonLine, plural } from "../../view/format.ts";
import { addCommand, wholeNumber } from "../command.ts";
import type { Io } from "../io.ts";
import { admissionFrom } from "../options/freshness-options.ts";
import {
  addRunOptions,
  heartbeatMsOf,
  identityFrom,
  type RunFlags,
  recorderFrom,
} from "../options/run-options.ts";
import { type BookFlags, withBook } from "../with-book.ts";

interface WorkerFlags extends BookFlags, RunFlags {
  queue: string;
  idle: number;
  stay?: true;
  json?: true;
}

export function addWorker(program: Command, io: Io): void {
  const command = addCommand(program, "worker", {
    summary: "join a launch from another process",
    description: `Join a launch from another process on this machine: the same queue, the same book, the same agent. Takes work
meant for this very agent only. Ends when the queue is empty, or when there was nothing for this agent for a while.`,
    examples: ["rollbook worker --book runs --queue runs/queue.db --agent agent.mjs"],
  });
  addRunOptions(command, {})
    .option("--idle <s>", "seconds without work before it ends", wholeNumber, 60)
    .option("--stay", "never end: wait for more work")
    .action((flags: WorkerFlags) => work(io, flags));
}

async function work(io: Io, flags: WorkerFlags): Promise<void> {
  if (!existsSync(flags.queue))
    throw new RollbookError(
      "no-queue",
      { path: flags.queue },
      `${flags.queue} is not there. \`rollbook launch\` makes one; name it with --queue.`,
    );
  const agent = await loadAgent(flags.agent);
  const { signer, trusts } = identityFrom(io);
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  try {
    await withBook(io, { ...flags, mode: "write" }, async (opened) => {
      const book = opened.store;
      const queue = openSqliteQueue(flags.queue, { clock: io.clock, ttlMs: flags.claimTtl * 1000 });
      const sealed = await openSealedIndex(opened.root);
      const { recorder } = recorderFrom(io, flags);
      const name = parseId(`${hostname()}-${process.pid}`.replaceAll(/[^A-Za-z0-9_.-]/g, "-"));
      const { admit } = await admissionFrom(flags, opened);
      const newSession = () => name;
      const desk = makeDesk({ queue, book, clock: io.clock, signer, trusts, newSession, admit });
      const receipts: Record<string, number> = {};
      let begun = 0;
      try {
        const run: typeof agent.run = (payload, context) => {
          begun++;
          return agent.run(payload, context);
        };
        const worker = startWorker({
          ...{
            desk,
            signer,
            queue,
            book,
            sealed,
            recorder,
            agent: { ...agent, run },
            clock: io.clock,
            signal: stop.signal,
          },
          rng: rngFrom(BigInt(process.pid)),
          ...{ name, concurrency: flags.concurrency, heartbeatMs: heartbeatMsOf(flags) },
          onReceipt: ({ record: { outcome } }) => {
            receipts[outcome] = (receipts[outcome] ?? 0) + 1;
          },
          ...(flags.rate === undefined ? {} : { rate: flags.rate }),
          attempts: { provider: flags.attempts, sandbox: flags.attempts, infrastructure: flags.attempts },
          ...(flags.stay ? {} : { idleMs: flags.idle * 1000 }),
          log: (line) => io.err(`${line}\n`),
        });
        await worker.ended;
      } finally {
        await sealed.close();
        await queue.close();
      }
      io.out(flags.json ? jsonLine({ begun, receipts }) : renderWork(begun, receipts));
    });
  } finally {
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
  }
}

/** `3 rollouts begun here; receipts: 2 stored, 1 expired` */
function renderWork(begun: number, receipts: Readonly<Record<string, number>>): string {
  const outcomes = Object.entries(receipts).map(([outcome, count]) => `${count} ${outcome}`);
  const given = outcomes.length === 0 ? "" : `; receipts: ${outcomes.join(", ")}`;
  return `${plural(begun, "rollout")} begun here${given}\n`;
}
