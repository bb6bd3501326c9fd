/** Creates a directory with those above it, durably. Node's own recursive mkdir never returns where a parent exists and yet
 *  answers "no such file", as /proc does; this tries each parent once. */
import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { RollbookError, reasonOf } from "../../base/index.ts";
import { syncDirectory } from "./files.ts";

/** The topmost directory that was missing, as `mkdir` answers; undefined where none was. `sync: false` leaves it to the caller
 *  to sync the directories that hold new names: a sync for each of many is slow. */
export function makeDirectory(
  path: string,
  { sync = true, ...options }: { mode?: number; sync?: boolean } = {},
): string | undefined {
  const missing: string[] = [];
  for (let at = resolve(path); !isThere(at, path); at = dirname(at)) missing.push(at);
  for (const directory of missing.reverse()) {
    try {
      mkdirSync(directory, options);
      if (sync) syncDirectory(dirname(directory));
    } catch (cause) {
      // Another process may have made it in the meantime.
      if ((cause as NodeJS.ErrnoException).code !== "EEXIST")
        throw cannotCreate(path, reasonOf(cause), cause);
    }
  }
  return missing[0];
}

/** True for a directory, false if there is nothing; anything else is in the way. */
function isThere(at: string, path: string): boolean {
  try {
    if (statSync(at).isDirectory()) return true;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw cannotCreate(path, reasonOf(cause), cause);
  }
  throw cannotCreate(path, `${at} is a file`);
}

function cannotCreate(path: string, reason: string, cause?: unknown): RollbookError {
  return new RollbookError(
    "no-directory",
    { path },
    `the directory ${path} cannot be created: ${reason}. Name another directory, or make it writable for you.`,
    { cause },
  );
}
