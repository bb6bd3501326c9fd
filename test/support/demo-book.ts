/** The book of the demo, made once for a test file and copied for each test that asks. */
import { cpSync, rmSync } from "node:fs";
import { afterAll } from "vitest";
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
  await cli.ok(`demo --book ${cli.book}`);
  return cli;
}
