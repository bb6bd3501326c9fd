/** Exclusive locks between processes, released by the operating system in any case when the holder ends.
 *  In: a path for the lock file. Out: a held lock, or undefined if another process holds it. A lock is an exclusive
 *  SQLite transaction, because Node has no flock. Nothing is ever written to the file. Does not work over network file
 *  systems without POSIX locks. */
import { statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { RollbookError } from "../../base/index.ts";
import { isBusy, isIoError, makePrivate, openSqlite } from "./sqlite.ts";

export interface Lock {
  release(): void;
}

/** A holder that releases a lock may remove its file. The file may vanish while it is opened here, which gives an I/O
 *  error. It may also vanish between opening and locking; then another process locks the new file. In both cases the
 *  file is opened again. */
export function tryLock(path: string): Lock | undefined {
  for (let tries = 1; ; tries++) {
    makePrivate(path);
    const before = identityOf(path);
    try {
      const db = openSqlite(path, { busyTimeoutMs: 0, journal: "off" });
      try {
        db.exec("BEGIN EXCLUSIVE");
        if (before !== undefined && identityOf(path) === before) return { release: () => db.close() };
      } catch (error) {
        db.close();
        throw error;
      }
      db.close();
      if (tries === MOST_TRIES) return undefined;
    } catch (error) {
      if (isBusy(error)) return undefined;
      if (!isIoError(error) || tries === MOST_TRIES) throw error;
    }
  }
}

const MOST_TRIES = 100;

/** Inode numbers are reused; together with the birth time they are unique. */
function identityOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.ino} ${found.birthtimeNs}`;
}

/** Runs `work` while holding the lock. Waits for the lock without blocking the event loop. */
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
