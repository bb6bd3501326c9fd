/** The book of the tour, made once for all test files of a run, and copied for each test that uses it. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BOOK_SCENES, runTour } from "../../src/loop/tour/index.ts";
import { Cli } from "./cli.ts";
import { madeOnce } from "./made-once.ts";

export async function demoBook(): Promise<Cli> {
  const cli = new Cli();
  await fillDemoBook(cli.book);
  return cli;
}

/** Fills the folder as `rollbook demo --tour --book DIR` does, without the scenes that do not write to the book. */
export async function fillDemoBook(root: string): Promise<void> {
  cpSync(await madeOnce("demo-book", make), root, { recursive: true });
}

async function make(root: string): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), "rollbook-demo-"));
  try {
    await runTour({ root, scratch, seed: 1n, scenes: BOOK_SCENES, onScene: () => {} });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
