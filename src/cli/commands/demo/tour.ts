/** Implements `rollbook demo --tour`: scenes that explain the records, on a small book of their own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { given, RollbookError } from "../../../base/index.ts";
import { isBook } from "../../../book/open/index.ts";
import { runTour } from "../../../loop/index.ts";
import { jsonLine } from "../../../view/format.ts";
import type { Io } from "../../io.ts";

interface TourFlags {
  book?: string;
  seed: bigint;
  json?: true;
  /** Scenes to run (default: all). */
  scenes?: TourScenes;
}

type TourScenes = Parameters<typeof runTour>[0]["scenes"];

export async function playTour(io: Pick<Io, "out" | "err">, flags: TourFlags): Promise<void> {
  if (flags.book !== undefined && isBook(flags.book)) {
    throw new RollbookError(
      "book-exists",
      { root: flags.book },
      `${flags.book} is already a book. Name a new directory.`,
    );
  }
  const scratch = mkdtempSync(join(tmpdir(), "rollbook-tour-"));
  const failed: string[] = [];
  if (!flags.json)
    io.out(
      "A policy writes answers, another decides how long it thinks. Their runs become proven batches.\n",
    );
  try {
    const publicKey = await runTour({
      root: flags.book ?? join(scratch, "book"),
      scratch,
      ...{ seed: flags.seed, ...given({ scenes: flags.scenes }) },
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
      `the tour could not show: ${failed.join(", ")}. Please report this.`,
    );
}

function keptText(book: string, publicKey: string): string {
  return `the book is in ${book}: try \`rollbook verify --book ${book}\`, after \`rollbook keys trust ${publicKey} demo\`\n`;
}
