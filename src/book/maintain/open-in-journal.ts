/** Finds what keeps calls of erased rollouts in the journals of gateways. In: the directory of a book, files of journals.
 *  Out: for each journal the gateway's name, and the rollouts to close. Changes nothing. */
import { dirname, join } from "node:path";
import type { Id } from "../../base/index.ts";

export interface HeldJournal {
  /** First of the files. */
  readonly path: string;
  readonly gateway: string;
  readonly open: readonly Id[];
}

export async function openInJournal(root: string, paths: readonly string[]): Promise<HeldJournal[]> {
  // Loaded on demand: after most erasures no journal holds calls.
  const { rolloutsHeldOpen } = await import("../../collect/gateway/index.ts");
  const folders = new Map<string, string>();
  for (const path of paths) if (!folders.has(dirname(path))) folders.set(dirname(path), path);
  return [...folders].map(([folder, path]) => ({
    ...{ path, gateway: folder.replace(/^journal\//, "") },
    open: rolloutsHeldOpen(join(root, folder)),
  }));
}
