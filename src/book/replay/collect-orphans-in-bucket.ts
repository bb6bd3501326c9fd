/** Removes segments of replay stores in a bucket that no manifest lists: crashed writers left them.
 *  In: s3://bucket/prefix with stores below it. Out: the removed segments. A writer whose last object is younger than
 *  an hour is not touched. An older writer is fenced first: the manifest is committed again without a change. If that
 *  writer is still alive, its own commit is then refused. Its objects are deleted only after this commit. Readers see
 *  the same segments throughout. */
import { canonicalize } from "../../base/index.ts";
import type { ReplayManifest } from "../../contract/index.ts";
import {
  MANIFEST_FILE,
  parseManifest,
  renewManifest,
  SEGMENTS,
  segmentedRoot,
} from "../../keep/replay/index.ts";
import { type Bucket, openS3Bucket } from "../../store/index.ts";
import { putRoot } from "./replay-in-bucket.ts";

const IDLE_MS = 3_600_000;

/** Objects of a segment, and the time of the last one. */
interface BucketSegment {
  readonly keys: string[];
  modifiedMs: number;
}

interface CollectOrphansOptions {
  /** Only reports what would be removed. */
  readonly dryRun: boolean;
  /** A writer without a new object for this time is considered dead (default: one hour). */
  readonly idleMs?: number;
}

export async function collectOrphansInBucket(
  url: string,
  { dryRun, idleMs = IDLE_MS }: CollectOrphansOptions,
): Promise<string[]> {
  const all = await openS3Bucket(url);
  const removed: string[] = [];
  for (const [store, segments] of await segmentsIn(all)) {
    const bucket = await openS3Bucket(`${url}/${store}`);
    const found = await bucket.getVersion(MANIFEST_FILE);
    if (found === undefined) continue; // the next write skips the names that a failed first write left
    const manifest = parseManifest(found.bytes, `${bucket.url}/${MANIFEST_FILE}`);
    if (manifest.layout !== "segmented") continue;
    const listed = new Set(manifest.segments.map(({ path }) => path));
    const beforeMs = (await bucket.nowMs()) - idleMs;
    const orphans = [...segments].filter(
      ([path, { modifiedMs }]) => !listed.has(path) && modifiedMs <= beforeMs,
    );
    // If another writer commits meanwhile, the next gc handles the orphans.
    if (orphans.length === 0 || !(dryRun || (await commitAgain(bucket, manifest, found.version)))) continue;
    if (!dryRun) await all.delete(orphans.flatMap(([, { keys }]) => keys));
    removed.push(...orphans.map(([path]) => `${bucket.url}/${path}`));
  }
  return removed;
}

/** Returns false if the manifest has changed. */
async function commitAgain(bucket: Bucket, manifest: ReplayManifest, version: string): Promise<boolean> {
  const next = renewManifest(manifest);
  const bytes = Buffer.from(canonicalize(next));
  if (!(await bucket.putIf(MANIFEST_FILE, bytes, version))) return false;
  await putRoot(bucket, { manifest: bytes, root: segmentedRoot(next.generation) });
  return true;
}

/** Segments by store, then by the path of the segment in the store. */
async function segmentsIn(bucket: Bucket): Promise<Map<string, Map<string, BucketSegment>>> {
  const stores = new Map<string, Map<string, BucketSegment>>();
  for await (const { key, modifiedMs } of bucket.list("")) {
    const [store, folder, name, ...rest] = key.split("/");
    if (store === undefined || folder !== SEGMENTS || name === undefined || rest.length === 0) continue;
    const segments = stores.get(store) ?? new Map<string, BucketSegment>();
    stores.set(store, segments);
    const segment = segments.get(`${SEGMENTS}/${name}`) ?? { keys: [], modifiedMs: 0 };
    segments.set(`${SEGMENTS}/${name}`, segment);
    segment.keys.push(key);
    segment.modifiedMs = Math.max(segment.modifiedMs, modifiedMs);
  }
  return stores;
}
