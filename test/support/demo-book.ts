/** The book of the tour, made once for a test file and copied for each test that asks. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { BOOK_SCENES, runTour } from "../../src/loop/tour/index.ts";
import { Cli } from "./cli.ts";

let made: Promise<Cli> | undefined;

afterAll(async () => {
  if (made !== undefined) rmSync((await made).folder, { recursive: true, force: true });
});

export async function demoBook(): Promise<Cli> {
  made ??= makeOnce();
  const cli = new Cli();
  cpSync((await made).book, cli.book, { recursive: true });
  return cli;
}

async function makeOnce(): Promise<Cli> {
  const cli = new Cli({ whenDone: () => {} });
  await fillDemoBook(cli.book);
  return cli;
}

/** As `rollbook demo --tour --book DIR` leaves it, without the scenes that do not write to it. */
export async function fillDemoBook(root: string): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), "rollbook-demo-"));
  try {
    await runTour({ root, scratch, seed: 1n, scenes: BOOK_SCENES, onScene: () => {} });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
