/** Folders that several test files read or copy, made once in a run of the tests. In: a name, and a function that makes
 *  the folder if it is missing. Out: its path; no test may change the folder. If two processes make the folder at the
 *  same time, the first to finish wins. */
import { existsSync, mkdtempSync, renameSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    /** memory-folder.ts sets and removes this folder. */
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
