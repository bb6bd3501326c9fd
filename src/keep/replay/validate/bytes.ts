/** Checks the bytes of a segment: every file exists and matches the manifest.
 *  In: a segment's directory and its manifest entry. Out: findings, and the metadata of the intact arrays. Hashes every
 *  stored byte; holds one object at a time. Uses the metadata of an array only if they match the manifest or the
 *  schema. Otherwise an altered file could make it look for billions of chunks. */
import { type Digest, reasonOf } from "../../../base/index.ts";
import type { ReplaySegment } from "../../../contract/index.ts";
import {
  arrayPaths,
  type ColumnSpec,
  digestFault,
  LOCK_FILE,
  MANIFEST_FILE,
  metadataFault,
  TABLE_NAMES,
} from "../tables/index.ts";
import { attributesOf } from "../write/index.ts";
import {
  type ArrayMetadata,
  ChunkSource,
  type DataType,
  digestArray,
  digestChunk,
  type FileStore,
  formatNode,
  type NodeMetadata,
  parseNode,
} from "../zarr/index.ts";
import type { ReplayErrorCode } from "./findings.ts";

type Report = (array: string, row: number | null, code: ReplayErrorCode, reason: string) => void;

/** Returns the arrays with correct bytes and shapes, by path. */
export async function checkBytes(
  store: FileStore,
  entry: ReplaySegment,
  report: Report,
): Promise<Map<string, ArrayMetadata>> {
  const expected = new Set<string>(entry.path === "" ? [MANIFEST_FILE, LOCK_FILE] : []);
  const trusted = await checkGroups(store, { entry, expected, report });
  const intact = new Map<string, ArrayMetadata>();
  for (const { path, spec, table } of arrayPaths()) {
    expected.add(`${path}/zarr.json`);
    const metadata = await chooseMetadata(store, path, { trusted, report });
    if (metadata === undefined) continue;
    const fault = columnFault(metadata, spec, {
      rows: entry.rows[table] ?? 0,
      maxCandidates: entry.maxCandidates,
    });
    if (fault !== undefined) {
      report(path, null, "shape", `${path} ${fault}`);
      continue;
    }
    const source = new ChunkSource(store, path, metadata as ArrayMetadata);
    for (let object = 0; object < source.objects; object++) expected.add(source.key(object));
    if (await checkArray(store, { path, source, expected: entry.arrays[path], report }))
      intact.set(path, source.metadata);
  }
  for (const key of store.keys())
    if (!expected.has(key)) report(key, null, "unexpected", `${key} does not belong to the store`);
  return intact;
}

/** Checks `zarr.json` of all groups. Returns the consolidated metadata if the root matches the manifest. */
async function checkGroups(
  store: FileStore,
  { entry, expected, report }: { entry: ReplaySegment; expected: Set<string>; report: Report },
): Promise<ReadonlyMap<string, NodeMetadata> | undefined> {
  let trusted: ReadonlyMap<string, NodeMetadata> | undefined;
  for (const group of ["", ...TABLE_NAMES]) {
    const key = group === "" ? "zarr.json" : `${group}/zarr.json`;
    expected.add(key);
    const bytes = await store.get(key);
    const fault = bytes === undefined ? "is missing" : digestFault(bytes, entry.groups[group]);
    if (bytes === undefined || fault !== undefined) {
      report(key, null, bytes === undefined ? "missing" : "metadata", `${key} ${fault}`);
    } else if (group === "") {
      const node = parseNode(bytes, key);
      trusted = node.kind === "group" ? node.consolidated : undefined;
      if (trusted === undefined) report(key, null, "metadata", `${key} has no consolidated metadata`);
    }
  }
  return trusted;
}

/** Consolidated metadata of an array, which must agree with the array's own; its own if there is no consolidated
 *  copy. */
async function chooseMetadata(
  store: FileStore,
  path: string,
  { trusted, report }: { trusted: ReadonlyMap<string, NodeMetadata> | undefined; report: Report },
): Promise<NodeMetadata | undefined> {
  const key = `${path}/zarr.json`;
  const bytes = await store.get(key);
  const known = trusted?.get(path);
  if (bytes === undefined) report(path, null, "missing", `${key} is missing`);
  else if (known !== undefined && Buffer.compare(bytes, formatNode(known)) !== 0)
    report(path, null, "metadata", `${key} differs from the consolidated metadata`);
  if (known !== undefined || bytes === undefined) return known;
  try {
    return parseNode(bytes, key);
  } catch (error) {
    report(path, null, "metadata", reasonOf(error));
    return undefined;
  }
}

function columnFault(
  metadata: NodeMetadata,
  spec: ColumnSpec,
  shape: { rows: number; maxCandidates: number },
): string | undefined {
  const fault = metadataFault(metadata, spec, shape);
  if (fault !== undefined) return fault;
  const { attributes } = metadata;
  for (const [name, value] of Object.entries(attributesOf(spec))) {
    if (attributes[name] === value) continue;
    return `has the attribute ${name} ${JSON.stringify(attributes[name])}, the schema says ${JSON.stringify(value)}`;
  }
  return undefined;
}

/** True if the array has the expected digest. Reports the damaged chunks if they can be identified. */
async function checkArray(
  store: FileStore,
  {
    path,
    source,
    expected,
    report,
  }: { path: string; source: ChunkSource<DataType>; expected: Digest | undefined; report: Report },
): Promise<boolean> {
  const { shardRows, chunkRows } = source.metadata;
  const digests: Digest[] = [];
  for (let object = 0; object < source.objects; object++) {
    const bytes = await store.get(source.key(object));
    if (bytes !== undefined) digests.push(digestChunk(bytes));
    else report(path, object * (shardRows || chunkRows), "missing", `${source.key(object)} is missing`);
  }
  const metadata = (await store.get(`${path}/zarr.json`)) ?? formatNode(source.metadata);
  const actual = digestArray(metadata, digests);
  if (actual === expected) return true;
  report(path, null, "digest", `${path} has digest ${actual}, the manifest says ${expected}`);
  for (let chunk = 0; chunk < source.count; chunk++) {
    try {
      await source.load(chunk);
    } catch (error) {
      report(path, chunk * chunkRows, "damaged", reasonOf(error));
    }
  }
  return false;
}
