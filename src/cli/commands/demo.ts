/** `rollbook demo`: a small real loop, told on one page. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { RollbookError } from "../../base/index.ts";
import { isBook } from "../../book/open/index.ts";
import { runTour } from "../../loop/index.ts";
import { jsonLine } from "../../view/format.ts";
import { addCommand, seedOption } from "../command.ts";
import type { Io } from "../io.ts";

interface DemoFlags {
  book?: string;
  seed: bigint;
  json?: true;
}

export function addDemo(program: Command, io: Io): void {
  addCommand(program, "demo", {
    summary: "run a small real loop on a book of its own",
    description:
      "Run a small real loop on a temporary book: revisions, rollouts, batches, verification, tampering, learning, judging and a gate.",
    examples: ["rollbook demo", "rollbook demo --book demo-book"],
    book: false,
  })
    .option("--book <dir>", "keep the book here (default: a temporary one)")
    .addOption(seedOption("fixes what happens", 1n))
    .action((flags: DemoFlags) => play(io, flags));
}

async function play(io: Io, flags: DemoFlags): Promise<void> {
  if (flags.book !== undefined && isBook(flags.book)) {
    throw new RollbookError(
      "book-exists",
      { root: flags.book },
      `${flags.book} is a book already. Name a new directory.`,
    );
  }
  const scratch = mkdtempSync(join(tmpdir(), "rollbook-demo-"));
  const failed: string[] = [];
  if (!flags.json)
    io.out(
      "A policy writes answers, another decides how long it thinks. Their runs become proven batches.\n",
    );
  try {
    const publicKey = await runTour({
      root: flags.book ?? join(scratch, "book"),
      scratch,
      seed: flags.seed,
      onScene({ number, title, lines, proved, data }) {
        if (proved.startsWith("NOTHING")) failed.push(title);
        if (flags.json) io.out(jsonLine({ scene: title, proved, ...data }));
        else
          io.out(
            `${number}. ${title}\n${lines.map((line) => `   ${line}\n`).join("")}   ${proved.startsWith("NOTHING") ? "✗" : "✓"} ${proved}\n`,
          );
      },
    });
    if (!flags.json)
      io.err(
        flags.book === undefined
          ? "the book was temporary; keep one with --book DIR\n"
          : keptText(flags.book, publicKey),
      );
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  if (failed.length > 0)
    throw new RollbookError(
      "demo-failed",
      { scenes: failed },
      `the demo could not show: ${failed.join(", ")}. Please report this.`,
    );
}

function keptText(book: string, publicKey: string): string {
  return `the book is in ${book}: try \`rollbook verify --book ${book}\`, after \`rollbook keys trust ${publicKey} demo\`\n`;
}
