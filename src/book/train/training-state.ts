/** Stores the state of an unfinished training, beside its future checkpoint: the same command continues from it.
 *  In: the checkpoint's folder. Out: a place to load from and save to, replaced atomically. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { RollbookError } from "../../base/index.ts";
import type { Saver } from "../../learn/index.ts";
import { makeDirectory, unlinkIfThere, writeAtomically } from "../../store/index.ts";

const TEMPORARY = ".tmp-";

export function trainingState(out: string): Saver {
  const path = pathOf(out);
  return {
    place: path,
    load: () => (existsSync(path) ? readFileSync(path) : undefined),
    save(bytes) {
      const temp = `${path}${TEMPORARY}${process.pid}`;
      makeDirectory(dirname(path));
      try {
        writeAtomically(path, bytes, temp);
      } catch (error) {
        unlinkIfThere(temp);
        throw error;
      }
    },
  };
}

/** Also removes files that a process killed during a save has left. */
export function removeTrainingState(out: string): void {
  const path = pathOf(out);
  unlinkIfThere(path);
  const [folder, prefix] = [dirname(path), `${basename(path)}${TEMPORARY}`];
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) if (name.startsWith(prefix)) unlinkIfThere(join(folder, name));
}

/** Refuses an existing folder before the training, so that hours of work are not lost at its end. */
export function requireFreeFolder(out: string | undefined): void {
  if (out === undefined || !existsSync(out)) return;
  throw new RollbookError("exists", { folder: out }, `${out} already exists. Name another folder.`);
}

function pathOf(out: string): string {
  return `${out}.training`;
}
