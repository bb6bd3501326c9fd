/** The state of an unfinished training, beside the checkpoint it will become: the same command continues from it.
 *  In: the checkpoint's folder. Out: a place to load from and save to, replaced in one step. */
import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { RollbookError } from "../../base/index.ts";
import type { Saver } from "../../learn/index.ts";
import { makeDirectory, unlinkIfThere, writeAtomically } from "../../store/index.ts";

export function trainingState(out: string): Saver {
  const path = pathOf(out);
  return {
    load: () => (existsSync(path) ? readFileSync(path) : undefined),
    save(bytes) {
      const temp = `${path}.tmp-${process.pid}`;
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

export function removeTrainingState(out: string): void {
  unlinkIfThere(pathOf(out));
}

/** Hours of training must not end at a folder that was there before. */
export function requireFreeFolder(out: string | undefined): void {
  if (out === undefined || !existsSync(out)) return;
  throw new RollbookError("exists", { folder: out }, `${out} already exists. Name another folder.`);
}

function pathOf(out: string): string {
  return `${out}.training`;
}
