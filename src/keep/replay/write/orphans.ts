/** Removes the leftovers of dead writers in a store: segments that no manifest lists, and temporary files.
 *  In: the directory of a store. Out: the removed paths. Waits for a running writer, and never touches its segments. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { RollbookError } from "../../../base/index.ts";
import { syncDirectory, withLock } from "../../../store/index.ts";
import { readCurrentManifest } from "../read/index.ts";
import {
  hasManifest,
  LOCK_FILE,
  MANIFEST_FILE,
  ROOT_FILE,
  removeTemporaries,
  SEGMENTS,
  segmentedRoot,
} from "../tables/index.ts";

export async function collectOrphans(root: string): Promise<string[]> {
  const directory = resolve(root);
  requireStore(directory);
  return withLock(join(directory, LOCK_FILE), () => {
    const orphans = listOrphans(directory);
    for (const path of orphans) rmSync(join(directory, path), { recursive: true, force: true });
    removeTemporaries(directory);
    if (orphans.length > 0) syncDirectory(join(directory, SEGMENTS));
    return orphans;
  });
}

/** Segments that no manifest lists. Without the lock a writer may be filling them. */
export function listOrphans(root: string): string[] {
  const folder = join(root, SEGMENTS);
  if (!existsSync(folder)) return [];
  const listed = new Set(hasManifest(root) ? readCurrentManifest(root).segments.map(({ path }) => path) : []);
  return readdirSync(folder)
    .map((name) => `${SEGMENTS}/${name}`)
    .filter((path) => !listed.has(path))
    .sort();
}

/** True for a store, or the start of one whose writer died before its first commit. */
export function isReplayStore(root: string): boolean {
  const path = join(root, ROOT_FILE);
  const begun = existsSync(path) && Buffer.compare(readFileSync(path), segmentedRoot(0)) === 0;
  return begun || hasManifest(root);
}

/** Refuses any other directory, so that nothing is removed from it. */
function requireStore(root: string): void {
  if (isReplayStore(root)) return;
  throw new RollbookError(
    "no-replay-store",
    { root },
    `${root} is not a replay store: it has no ${MANIFEST_FILE}. Name another directory.`,
  );
}
