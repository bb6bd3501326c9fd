/** Describes, validates and compacts an existing replay store. `write-replay.ts` fills it. A store is named by its
 *  directory, or by s3://bucket/prefix. */
import {
  type CompactOptions,
  compactReplay as compactStore,
  isReplayStore,
  listOrphans,
  openReplay,
  type ReplayCheckOptions,
  type ReplayManifest,
  readManifest,
  type ValidationReport,
  validateReplay as validateStore,
} from "../../keep/replay/index.ts";
import { withReplay } from "./replay-in-bucket.ts";

interface ReplayDescription {
  readonly manifest: ReplayManifest;
  /** Segments that a crashed writer left. */
  readonly orphans: readonly string[];
}

export function describeReplay(root: string): Promise<ReplayDescription> {
  return withReplay(root, "read", async (folder) => {
    const store = await openReplay(folder);
    store.close();
    return { manifest: store.manifest, orphans: listOrphans(folder) };
  });
}

export function validateReplay(root: string, options: ReplayCheckOptions = {}): Promise<ValidationReport> {
  return withReplay(root, "read", (folder) => {
    // A path that is no store is refused; it must not count as a damaged store.
    if (!isReplayStore(folder)) readManifest(folder);
    return validateStore(folder, options);
  });
}

export function compactReplay({ from, to, ...options }: CompactOptions): Promise<ReplayManifest> {
  return withReplay(from, "read", (source) =>
    withReplay(to, "create", (target) => compactStore({ ...options, from: source, to: target })),
  );
}
