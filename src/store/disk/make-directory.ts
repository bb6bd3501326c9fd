/** Creates a directory with its parents, durably. Node's recursive mkdir never returns if a parent exists and yet
 *  answers "no such file", as /proc does. This function tries each parent once. */
import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { RollbookError, reasonOf } from "../../base/index.ts";
import { syncDirectory } from "./files.ts";

/** Returns the topmost directory that was missing, like `mkdir`; undefined if none was. `sync: false` leaves syncing
 *  the directories with new names to the caller: one sync per directory is slow. */
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
      // Another process may have created the directory in the meantime.
      if ((cause as NodeJS.ErrnoException).code !== "EEXIST")
        throw cannotCreate(path, reasonOf(cause), cause);
    }
  }
  return missing[0];
}

/** True for a directory, false if nothing exists there; throws for anything else. */
function isThere(at: string, path: string): boolean {
  try {
    if (statSync(at).isDirectory()) return true;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw cannotCreate(path, reasonOf(cause), cause);
  }
  throw new RollbookError(
    "no-directory",
    { path },
    `the directory ${path} cannot be created: ${at} is a file. Name another directory.`,
  );
}

function cannotCreate(path: string, reason: string, cause: unknown): RollbookError {
  return new RollbookError(
    "no-directory",
    { path },
    `the directory ${path} cannot be created: ${reason}. Name another directory, or make it writable for you.`,
    { cause },
  );
}
