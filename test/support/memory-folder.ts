/** Puts the tests' temporary folders in memory if the machine has enough of it. A book syncs every commit, and
 *  thousands of commits would wait for the disk. All tests share one folder, which is removed with its content at the
 *  end. made-once.ts fills a folder inside it. */
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
  // Some tests run programs as another user.
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

/** Removes the folders of killed runs, which would take memory until the machine restarts. */
function removeAbandoned(): void {
  for (const name of readdirSync(MEMORY)) {
    const pid = NAME.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) removeOne(join(MEMORY, name));
  }
}

/** Leftovers of another run must not fail this run. They only take memory, so a warning is enough. */
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
