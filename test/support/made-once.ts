/** Folders that several test files read or copy, made once in a run of the tests.
 *  In: a name, and what makes the folder where it is missing. Out: its path, which no test may change. Two processes may make one at
 *  the same time: the first to end counts. */
import { existsSync, mkdtempSync, renameSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    /** Set by memory-folder.ts, and removed by it. */
    sharedFolder: string;
  }
}

export async function madeOnce(name: string, make: (folder: string) => Promise<void>): Promise<string> {
  const shared = inject("sharedFolder");
  const path = join(shared, name);
  if (existsSync(path)) return path;
  const made = join(mkdtempSync(join(shared, "part-")), name);
  await make(made);
  try {
    renameSync(made, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  }
  return path;
}
