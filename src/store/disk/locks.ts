/** Exclusive locks between processes, released by the operating system however the holder ends.
 *  In: a path for the lock file. Out: a held lock, or undefined if another holds it.
 *  A lock is an exclusive SQLite transaction: Node has no flock. Nothing is ever written to the file.
 *  Does not work over network file systems without POSIX locks. */
import { setTimeout as sleep } from "node:timers/promises";
import { RollbookError } from "../../base/index.ts";
import { isBusy, openSqlite } from "./sqlite.ts";

export interface Lock {
  release(): void;
}

export function tryLock(path: string): Lock | undefined {
  try {
    const db = openSqlite(path, { busyTimeoutMs: 0, journal: "off" });
    try {
      db.exec("BEGIN EXCLUSIVE");
    } catch (error) {
      db.close();
      throw error;
    }
    return { release: () => db.close() };
  } catch (error) {
    if (isBusy(error)) return undefined;
    throw error;
  }
}

/** Runs `work` while holding the lock, waiting for it without blocking the event loop. */
export async function withLock<T>(path: string, work: () => Promise<T> | T, timeoutMs = 30_000): Promise<T> {
  const lock = await waitForLock(path, timeoutMs);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

async function waitForLock(path: string, timeoutMs: number): Promise<Lock> {
  for (let waitedMs = 0; ; waitedMs += 5) {
    const lock = tryLock(path);
    if (lock !== undefined) return lock;
    if (waitedMs >= timeoutMs)
      throw new RollbookError(
        "locked",
        { path, timeoutMs },
        `${path}: another process has held this lock for ${timeoutMs} ms. Wait for it to finish, or end it.`,
      );
    await sleep(5);
  }
}
