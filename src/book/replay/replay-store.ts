/** What can be done with a replay store that is there: describe, validate and compact it. `write-replay.ts` fills it. */
import { listOrphans, openReplay, type ReplayManifest } from "../../keep/replay/index.ts";

export { compactReplay, validateReplay } from "../../keep/replay/index.ts";

export interface ReplayDescription {
  readonly manifest: ReplayManifest;
  /** Segments that a dead writer left. */
  readonly orphans: readonly string[];
}

export async function describeReplay(root: string): Promise<ReplayDescription> {
  const store = await openReplay(root);
  store.close();
  return { manifest: store.manifest, orphans: listOrphans(root) };
}
