/** `manifest.json` and the root group of a store: checked reads and atomic replacement.
 *  In: the directory of a store. Out: the manifest, or a refusal that names the release the store needs. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { canonicalize, type Digest, digestJson, RollbookError } from "../../../base/index.ts";
import { openRecord, parseCanonical, ReplayManifest } from "../../../contract/index.ts";
import { isMissing, writeAtomically } from "../../../store/index.ts";
import { formatNode } from "../zarr/index.ts";
import { NEEDS, SCHEMA_ID, SCHEMA_VERSION, TABLE_NAMES } from "./schema.ts";

export const MANIFEST_FILE = "manifest.json";
export const ROOT_FILE = "zarr.json";
export const SEGMENTS = "segments";
export const LOCK_FILE = "writer.lock";

type ManifestParts = Omit<ReplayManifest, "schema" | "digest" | "needs" | "tables" | "rows">;

export function sealReplayManifest(parts: ManifestParts): ReplayManifest {
  const body = {
    schema: ReplayManifest.kind,
    needs: NEEDS,
    tables: { id: SCHEMA_ID, version: SCHEMA_VERSION },
    rows: totalRows(parts.segments),
    ...parts,
  };
  return { ...body, digest: digestOf(body) };
}

/** The next commit of a store without changes: a writer that began before it is then refused. */
export function renewManifest(manifest: ReplayManifest): ReplayManifest {
  const { schema: _, digest: _digest, needs: _needs, tables: _tables, rows: _rows, ...parts } = manifest;
  return sealReplayManifest({ ...parts, generation: manifest.generation + 1 });
}

export function hasManifest(root: string): boolean {
  return existsSync(join(root, MANIFEST_FILE));
}

/** Manifest of the store at `root`, with its own digest checked. */
export function readManifest(root: string): ReplayManifest {
  const where = join(root, MANIFEST_FILE);
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(where);
  } catch (cause) {
    if (!isMissing(cause) && (cause as NodeJS.ErrnoException).code !== "ENOTDIR") throw cause;
    throw new RollbookError(
      "no-replay-store",
      { root },
      `${root} is not a replay store: it is not a directory with a ${MANIFEST_FILE}. Name the directory of a store, or write one with \`rollbook replay write DIR\`.`,
      { cause },
    );
  }
  return parseManifest(bytes, where);
}

/** `where`: location for messages. */
export function parseManifest(bytes: Uint8Array, where: string): ReplayManifest {
  refuseNewer(bytes, where);
  const manifest = openRecord(ReplayManifest, bytes, where);
  const { digest, ...body } = manifest;
  const actual = digestOf(body);
  if (digest === actual) return manifest;
  throw new RollbookError(
    "digest-mismatch",
    { where, expected: digest, actual },
    `${where}: content is ${actual}, its own digest says ${digest}. Restore the file from a copy.`,
  );
}

/** Makes `manifest` the state of the store. Everything it lists must already be on disk. */
export function commitManifest(root: string, manifest: ReplayManifest): void {
  const path = join(root, MANIFEST_FILE);
  writeAtomically(path, Buffer.from(canonicalize(manifest)), `${path}.tmp`);
}

/** Root of a segmented store: a bare group, so that no Zarr reader takes one segment for the whole. */
export function segmentedRoot(generation: number): Uint8Array {
  const attributes = {
    schema: SCHEMA_ID,
    version: SCHEMA_VERSION,
    layout: "segmented",
    generation,
    manifest: MANIFEST_FILE,
    note: "The rows are in the segments that manifest.json lists, each a Zarr group of its own.",
  };
  return formatNode({ kind: "group", attributes, consolidated: undefined });
}

/** Commit number in the root of a segmented store. Undefined: the root is not from our writer. */
export function rootGeneration(root: Uint8Array): number | undefined {
  const found = /"generation":(\d+)/.exec(Buffer.from(root).toString("latin1"))?.[1];
  return found !== undefined && Buffer.compare(root, segmentedRoot(Number(found))) === 0
    ? Number(found)
    : undefined;
}

export function commitRoot(root: string, generation: number): void {
  const path = join(root, ROOT_FILE);
  writeAtomically(path, segmentedRoot(generation), `${path}.tmp`);
}

export function removeTemporaries(root: string): void {
  for (const file of [MANIFEST_FILE, ROOT_FILE]) rmSync(join(root, `${file}.tmp`), { force: true });
}

export function segmentRoot(root: string, segment: { path: string }): string {
  return segment.path === "" ? root : join(root, segment.path);
}

export function totalRows(segments: readonly { rows: Record<string, number> }[]): Record<string, number> {
  return Object.fromEntries(
    TABLE_NAMES.map((table) => [table, segments.reduce((sum, { rows }) => sum + (rows[table] ?? 0), 0)]),
  );
}

function digestOf(body: object): Digest {
  return digestJson(`${ReplayManifest.kind}.digest`, body);
}

/** A store of a later schema may have any shape: name the release it needs before checking the shape. */
function refuseNewer(bytes: Uint8Array, where: string): void {
  const value = parseCanonical(bytes, where) as { schema?: unknown; needs?: unknown; tables?: unknown };
  const kind = /^rollbook\.replay-manifest\.v(\d+)$/.exec(String(value?.schema));
  const version = Number((value?.tables as { version?: unknown } | undefined)?.version);
  const newer = (kind !== null && Number(kind[1]) > 1) || version > SCHEMA_VERSION;
  if (!newer) return;
  const needs = typeof value.needs === "string" ? value.needs : "a newer release of rollbook";
  throw new RollbookError(
    "newer-replay-schema",
    { where, schema: value.schema, version, needs, supported: SCHEMA_VERSION },
    `${where}: the store has ${String(value.schema)} with tables of version ${version}; this release reads version ${SCHEMA_VERSION}. It needs ${needs}.`,
  );
}
