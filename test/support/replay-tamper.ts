/** Changes a replay store as a buggy writer would: values are wrong, but every digest matches. For tests only. */
import { digestBytes } from "../../src/base/digest.ts";
import type { ReplayManifest } from "../../src/contract/batch/replay-manifest.ts";
import {
  commitManifest,
  readManifest,
  sealReplayManifest,
  segmentRoot,
} from "../../src/keep/replay/tables/manifest.ts";
import type { Values } from "../../src/keep/replay/zarr/codecs/data-types.ts";
import {
  consolidate,
  createArray,
  FileStore,
  METADATA_TAG,
  openArray,
} from "../../src/keep/replay/zarr/index.ts";

/** Replaces the values of a segment's array with the result of `change`, and seals the store again. */
export async function rewriteColumn<V extends Values>(
  root: string,
  path: string,
  { change, segment = 0 }: { change: (values: V) => void; segment?: number },
): Promise<void> {
  const manifest = readManifest(root);
  const entry = manifest.segments[segment]!;
  const store = new FileStore(segmentRoot(root, entry));
  const array = await openArray(store, path);
  const values = (await array.read()) as V;
  change(values);
  const { dtype, shape, attributes, dimensionNames } = array.metadata;
  const writer = createArray(store, path, {
    dtype,
    row: shape.slice(1),
    attributes,
    ...(dimensionNames === undefined ? {} : { dimensionNames }),
  });
  await writer.append(values as never);
  const written = await writer.close();
  entry.arrays[path] = written.digests.array;
  await consolidate(store, "");
  entry.groups[""] = digestBytes(METADATA_TAG, (await store.get("zarr.json"))!);
  store.close();
  reseal(root, manifest);
}

export function reseal(root: string, { digest: _, ...manifest }: ReplayManifest): void {
  commitManifest(root, sealReplayManifest(manifest));
}
