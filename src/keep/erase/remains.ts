/** Finds places beside the packs that may still hold data of an erased rollout: the gateway's journal, torn ends of
 *  packs, replay stores. In: a book's directory and the ids of rollouts. Out: paths relative to the book. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

export interface Remains {
  /** Files of the gateway's journal that contain an id. */
  readonly journal: readonly string[];
  /** Torn ends that recovery set aside; they may hold any data. */
  readonly torn: readonly string[];
  /** Replay stores of the book: they hold copies of decisions and tokens and are not rewritten. */
  readonly replay: readonly string[];
}

/** Removes the lists of closed rollouts that earlier versions of the gateway left beside their journals. They may quote
 *  an erased rollout, and no code reads them any more. */
export function removeClosedLists(root: string): void {
  for (const worker of filesOf(root, "journal"))
    for (const suffix of ["", "-wal", "-shm"])
      rmSync(join(root, worker, `closed.db${suffix}`), { force: true });
}

export function findRemains(root: string, rollouts: readonly string[]): Remains {
  // A call names its rollout as plain text, an event as JSON.
  const ids = rollouts.flatMap((id) => [Buffer.from(id), Buffer.from(JSON.stringify(id).slice(1, -1))]);
  const holds = (path: string) => {
    const bytes = readFileSync(join(root, path));
    return ids.some((id) => bytes.includes(id));
  };
  const segments = filesOf(root, "journal").flatMap((worker) => filesOf(root, worker));
  return {
    journal: segments.filter((path) => path.endsWith(".log") && holds(path)),
    torn: filesOf(root, "torn"),
    replay: filesOf(root, "replay"),
  };
}

function filesOf(root: string, folder: string): string[] {
  const path = join(root, folder);
  return existsSync(path)
    ? readdirSync(path)
        .sort()
        .map((name) => `${folder}/${name}`)
    : [];
}
