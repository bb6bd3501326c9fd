/** Temporary folders of the tests are in memory where the machine has enough of it: a book syncs every commit, and thousands
 *  of commits wait for no disk. One folder for all, removed at the end with what tests left there; in it the one that
 *  made-once.ts fills. */
import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { releaseFolder } from "./abandoned-daemon.ts";

const MEMORY = "/dev/shm";
const ENOUGH_BYTES = 4 * 2 ** 30;
const NAME = /^rollbook-tests-(\d+)-/;

export default function setup(project: TestProject): () => void {
  const inMemory = hasRoom();
  if (inMemory) removeAbandoned();
  const folder = mkdtempSync(join(inMemory ? MEMORY : tmpdir(), `rollbook-tests-${process.pid}-`));
  // Some tests act as another user.
  chmodSync(folder, 0o1777);
  process.env.TMPDIR = folder;
  project.provide("sharedFolder", mkdtempSync(join(folder, "shared-")));
  return () => rmSync(folder, { recursive: true, force: true });
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ENOUGH_BYTES;
  } catch {
    return false;
  }
}

/** Those of runs that were killed: memory would stay taken until the next start of the machine. */
function removeAbandoned(): void {
  for (const name of readdirSync(MEMORY)) {
    const pid = NAME.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) removeOne(join(MEMORY, name));
  }
}

/** What another run left is no reason for this one to fail: it takes memory, and a person is told. */
function removeOne(folder: string): void {
  try {
    releaseFolder(folder);
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    console.warn(`${folder} of a killed test run cannot be removed: ${String(error)}. Remove it by hand.`);
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
