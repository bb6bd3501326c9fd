/** Compacts a store into one plain Zarr tree: dictionaries, sources and targets merged, rows renumbered, `q_h` rebuilt.
 *  In: a store. Out: a new store in a new directory, created atomically. The old store is unchanged. Holds the merged
 *  texts and a few hundred bytes per source; everything else is copied in blocks. */
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Clock, RollbookError } from "../../../base/index.ts";
import type { ReplayManifest, ReplaySegment, ReplayWriter } from "../../../contract/index.ts";
import { makeDirectory, syncDirectory } from "../../../store/index.ts";
import { openReplay, type PlacedSegment, type ReplayStore, shiftRows } from "../read/index.ts";
import {
  type ColumnSpec,
  columnsOf,
  commitManifest,
  MANIFEST_FILE,
  ReasonNames,
  ROOT_FILE,
  requireWhole,
  type SegmentReader,
  sealReplayManifest,
  TABLE_NAMES,
  type TableName,
  tableOf,
} from "../tables/index.ts";
import { type FactTable, SegmentWriter } from "./segment-writer.ts";
import { addStoredChains, readSources, readTargets } from "./stored-rows.ts";
import type { Layout } from "./table-writer.ts";
import { writerOf } from "./write-session.ts";

export interface CompactOptions {
  readonly from: string;
  /** A directory that does not exist yet. */
  readonly to: string;
  readonly clock: Clock;
  readonly layout?: Layout;
  readonly writer?: Partial<ReplayWriter>;
  readonly durable?: boolean;
  readonly onProgress?: (progress: { segments: number; of: number }) => void;
}

export async function compactReplay(options: CompactOptions): Promise<ReplayManifest> {
  const to = resolve(options.to);
  if (existsSync(to))
    throw new RollbookError("replay-exists", { to }, `${to} already exists. Name a new directory.`);
  const store = await openReplay(options.from, { cacheBytes: "walk" });
  const partial = `${to}.partial`;
  removeLeftover(partial);
  makeDirectory(partial);
  try {
    // Copied columns get new digests: without this check a changed column would become a valid one.
    for (const segment of store.manifest.segments) await requireWhole(resolve(options.from), segment);
    const manifest = await writePlain(store, partial, options);
    commitManifest(partial, manifest);
    renameSync(partial, to);
    syncDirectory(dirname(to));
    return manifest;
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw error;
  } finally {
    store.close();
  }
}

/** Removes the leftovers of a compaction that died. Refuses a directory with any other file. */
function removeLeftover(partial: string): void {
  const names = existsSync(partial) ? readdirSync(partial) : [];
  const ours: readonly string[] = [...TABLE_NAMES, ROOT_FILE, MANIFEST_FILE];
  const foreign = names.filter((name) => !ours.includes(name) && !name.endsWith(".tmp"));
  if (foreign.length > 0)
    throw new RollbookError(
      "not-empty",
      { partial, foreign },
      `${partial}, where the store would be made, holds other things (${foreign.slice(0, 3).join(", ")}). Move it, or name another directory.`,
    );
  rmSync(partial, { recursive: true, force: true });
}

async function writePlain(
  store: ReplayStore,
  directory: string,
  { clock, layout = {}, writer, durable = true, onProgress }: CompactOptions,
): Promise<ReplayManifest> {
  const { manifest } = store;
  const target = new SegmentWriter({
    directory,
    path: "",
    returns: manifest.returns,
    layout,
    reasons: new ReasonNames(manifest.reasons),
    writer: writerOf(writer),
    createdAtMs: clock.nowMs(),
    durable,
  });
  for (const segment of store.segments) {
    const { maxCandidates, maxFeatures } = manifest.segments[segment.index]!;
    target.saw("maxCandidates", maxCandidates);
    target.saw("maxFeatures", maxFeatures);
    await copySegment(segment, target);
    onProgress?.({ segments: segment.index + 1, of: store.segments.length });
  }
  const entry = await target.close();
  return sealReplayManifest({
    layout: "plain",
    generation: 1,
    returns: manifest.returns,
    reasons: manifest.reasons,
    segments: [withHeads(entry, manifest.segments)],
    compactedFrom: manifest.digest,
  });
}

/** A tree made of several segments names the heads of all of them. */
function withHeads(entry: ReplaySegment, from: readonly ReplaySegment[]): ReplaySegment {
  const heads = [...new Set(from.flatMap((each) => each.heads ?? []))].sort();
  return heads.length === 0 ? entry : { ...entry, heads };
}

/** Tables that are copied with renumbered rows; the other facts are merged. */
const COPIED = ["chains", "lineage", "steps", "candidates", "candidate_features", "tokens"] as const;

async function copySegment({ reader }: PlacedSegment, target: SegmentWriter): Promise<void> {
  const texts = Int32Array.from(await reader.texts(), (text) => target.texts.id(text));
  const rows = { sources: await copySources(reader, target), targets: await copyTargets(reader, target) };
  const first = Object.fromEntries(COPIED.map((table) => [table, target.tables[table].rows]));
  for (const table of COPIED) await copyTable({ reader, target, table, maps: { texts, rows, first } });
  await addStoredChains(target.hashes, reader);
}

/** Maps from row numbers of a segment to those of the tree. */
interface Maps {
  texts: Int32Array;
  rows: { sources: Int32Array; targets: Int32Array };
  first: Readonly<Record<string, number>>;
}

async function copyTable({
  reader,
  target,
  table,
  maps,
}: {
  reader: SegmentReader;
  target: SegmentWriter;
  table: FactTable;
  maps: Maps;
}): Promise<void> {
  for await (const { from, to, columns } of reader.blocks(table, columnsOf(table))) {
    for (const [name, values] of Object.entries(columns))
      renumber(values, tableOf(table as TableName).columns[name]!, maps);
    await target.tables[table].append(columns as never, to - from);
  }
}

function renumber(values: unknown, { references, starts, dictionary }: ColumnSpec, maps: Maps): void {
  const map = dictionary ? maps.texts : maps.rows[references as "sources" | "targets"];
  if (map === undefined) {
    shiftRows(values, maps.first[(references ?? starts)!] ?? 0);
    return;
  }
  const rows = values as Int32Array;
  for (let i = 0; i < rows.length; i++) if (rows[i]! >= 0) rows[i] = map[rows[i]!]!;
}

/** Adds the sources that the tree lacks. Returns the row of each source in the tree. */
async function copySources(reader: SegmentReader, target: SegmentWriter): Promise<Int32Array> {
  const map = new Int32Array(reader.rows("sources"));
  for await (const { row, source } of readSources(reader)) {
    map[row] = target.source(source);
    await target.drain();
  }
  return map;
}

async function copyTargets(reader: SegmentReader, target: SegmentWriter): Promise<Int32Array> {
  return Int32Array.from(await readTargets(reader), (each) => target.target(each.target));
}
