/** Opens the segments that a manifest lists: one read each, checked against the manifest.
 *  In: the directory of a store and its manifest. Out: readers. Opening refuses an altered `zarr.json`; reading refuses
 *  altered chunks by their checksums. */
import { type Digest, digestBytes, RollbookError } from "../../../base/index.ts";
import type { ReplayManifest, ReplaySegment } from "../../../contract/index.ts";
import {
  type ChunkCache,
  ChunkSource,
  digestArray,
  digestChunk,
  FileStore,
  type GroupMetadata,
  METADATA_TAG,
  parseNode,
} from "../zarr/index.ts";
import { segmentRoot } from "./manifest.ts";
import { arrayPaths } from "./schema.ts";
import { firstMetadataFault, SegmentReader } from "./segment-reader.ts";

export interface OpenedSegment {
  readonly entry: ReplaySegment;
  readonly store: FileStore;
  readonly reader: SegmentReader;
}

export async function openSegments(
  root: string,
  manifest: ReplayManifest,
  cache?: ChunkCache,
): Promise<OpenedSegment[]> {
  const opened: OpenedSegment[] = [];
  for (const entry of manifest.segments) opened.push(await openSegment(root, entry, cache));
  return opened;
}

export async function openSegment(
  root: string,
  entry: ReplaySegment,
  cache?: ChunkCache,
): Promise<OpenedSegment> {
  const directory = segmentRoot(root, entry);
  const store = new FileStore(directory);
  const bytes = await store.get("zarr.json");
  const fault = bytes === undefined ? "is missing" : digestFault(bytes, entry.groups[""]);
  if (bytes === undefined || fault !== undefined) throw bad(directory, `zarr.json ${fault}`);
  const group = parseNode(bytes, `${directory}/zarr.json`) as GroupMetadata;
  const metadata = group.consolidated ?? new Map();
  const unfit = firstMetadataFault(metadata, entry);
  if (unfit !== undefined) throw bad(directory, unfit);
  const { rows, maxCandidates } = entry;
  return { entry, store, reader: new SegmentReader(store, { metadata, rows, maxCandidates, cache }) };
}

/** Hashes every stored byte of a segment and refuses it if its arrays differ from the manifest. Chunk checksums detect
 *  accidents. Only digests detect a column that was changed together with its checksums. */
export async function requireWhole(root: string, entry: ReplaySegment): Promise<void> {
  const { store, reader } = await openSegment(root, entry);
  const directory = segmentRoot(root, entry);
  try {
    for (const { path } of arrayPaths()) {
      const source = new ChunkSource(store, path, reader.metadataOf(path));
      const digests: Digest[] = [];
      for (let object = 0; object < source.objects; object++) {
        const bytes = await store.get(source.key(object));
        if (bytes === undefined) throw bad(directory, `${source.key(object)} is missing`);
        digests.push(digestChunk(bytes));
      }
      const metadata = await store.get(`${path}/zarr.json`);
      if (metadata === undefined) throw bad(directory, `${path}/zarr.json is missing`);
      const actual = digestArray(metadata, digests);
      const expected = entry.arrays[path];
      if (actual !== expected)
        throw bad(directory, `${path} has digest ${actual}, the manifest says ${expected}`);
    }
  } finally {
    store.close();
  }
}

export function closeSegments(segments: readonly OpenedSegment[]): void {
  for (const { store } of segments) store.close();
}

export function digestFault(bytes: Uint8Array, expected: Digest | undefined): string | undefined {
  const actual = digestBytes(METADATA_TAG, bytes);
  return actual === expected ? undefined : `has digest ${actual}, the manifest says ${expected}`;
}

function bad(directory: string, fault: string): RollbookError {
  return new RollbookError(
    "replay-bad-segment",
    { directory },
    `${directory}: ${fault}. Restore the segment from a copy; \`replay validate\` lists all damage.`,
  );
}
