/** Reads the state of a run from the sealed transitions of a book. */
import { parseId } from "../base/index.ts";
import { readTransitions } from "../book/loop/index.ts";
import type { BookOnDisk } from "../book/open/index.ts";
import { foldRun, type RunState } from "./fold.ts";

export async function readRun(book: BookOnDisk, run: string): Promise<RunState> {
  return foldRun(run, await readTransitions(book, parseId(run)));
}
