/** Reads a replay store as one sequence of segments.
 *  In: the directory of a store. Out: columns in blocks, the dense view, minibatches. Row numbers run over the whole
 *  store. Opening checks the contract (schema, manifest, metadata); reading checks every chunk's checksum;
 *  `validateReplay` checks values. Does not write. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { RollbookError } from "../../../base/index.ts";
import type { ReplayManifest } from "../../../contract/index.ts";
import { isMissing } from "../../../store/index.ts";
import {
  type ColumnName,
  type ColumnSpec,
  type ColumnsOf,
  closeSegments,
  columnOf,
  MANIFEST_FILE,
  type OpenedSegment,
  openSegments,
  ROOT_FILE,
  readManifest,
  rootGeneration,
  type SegmentReader,
  TABLE_NAMES,
  type TableName,
} from "../tables/index.ts";
import { ChunkCache } from "../zarr/index.ts";

/** Rows `from` … `to` of a table. Dictionary columns hold rows of `texts`. */
interface Block<T extends TableName, C extends ColumnName<T>> {
  readonly from: number;
  readonly to: number;
  readonly segment: number;
  readonly columns: ColumnsOf<T, C>;
  readonly texts: readonly string[];
}

/** A segment and its first rows in the whole store. */
export interface PlacedSegment {
  readonly index: number;
  readonly reader: SegmentReader;
  readonly first: Readonly<Record<TableName, number>>;
}

const CACHE_BYTES = 256e6;

export interface OpenReplayOptions {
  /** Total size of the cache of decoded chunks for random reads; 256 MB by default. `walk` keeps one chunk per array,
   *  for reading in order. */
  readonly cacheBytes?: number | "walk";
}

export async function openReplay(
  root: string,
  { cacheBytes = CACHE_BYTES }: OpenReplayOptions = {},
): Promise<ReplayStore> {
  const directory = resolve(root);
  const manifest = readCurrentManifest(directory);
  const cache = cacheBytes === "walk" ? undefined : new ChunkCache(cacheBytes);
  const segments = await openSegments(directory, manifest, cache);
  return new ReplayStore(directory, { manifest, segments });
}

export class ReplayStore {
  readonly root: string;
  readonly manifest: ReplayManifest;
  readonly segments: readonly PlacedSegment[];
  /** Largest number of candidates of a state. */
  readonly width: number;
  readonly #opened: readonly OpenedSegment[];

  constructor(
    root: string,
    { manifest, segments }: { manifest: ReplayManifest; segments: readonly OpenedSegment[] },
  ) {
    this.root = root;
    this.manifest = manifest;
    this.#opened = segments;
    this.segments = placeSegments(segments);
    this.width = Math.max(1, ...segments.map(({ entry }) => entry.maxCandidates));
  }

  rows(table: TableName): number {
    return this.manifest.rows[table] ?? 0;
  }

  /** Some columns of a table, block by block; no block crosses a segment. */
  async *blocks<T extends TableName, C extends ColumnName<T>>(
    table: T,
    columns: readonly C[],
    { rows }: { rows?: number } = {},
  ): AsyncGenerator<Block<T, C>> {
    for (const segment of this.segments) {
      const texts = await segment.reader.texts();
      const first = segment.first[table];
      for await (const { from, to, columns: values } of segment.reader.blocks(table, columns, rows)) {
        for (const name of columns) rebase(values[name], columnOf(table, name), segment.first);
        yield { from: first + from, to: first + to, segment: segment.index, columns: values, texts };
      }
    }
  }

  /** Segment that holds a row of a table. */
  segmentOf(table: TableName, row: number): PlacedSegment {
    const found = this.segments.findLast((segment) => segment.first[table] <= row);
    if (found !== undefined && row >= 0 && row < this.rows(table)) return found;
    throw new RollbookError(
      "no-such-row",
      { table, row },
      `${table} has rows 0 … ${this.rows(table) - 1}, not ${row}. Fix the row number.`,
    );
  }

  close(): void {
    closeSegments(this.#opened);
  }
}

/** Turns rows of a segment into rows of the store, in place. */
export function rebase(
  values: unknown,
  { references, starts }: ColumnSpec,
  first: PlacedSegment["first"],
): void {
  const table = (references ?? starts) as TableName | undefined;
  if (table !== undefined) shiftRows(values, first[table]);
}

/** Adds to row numbers, in place; −1 stays, because it means no row. */
export function shiftRows(values: unknown, shift: number): void {
  if (shift === 0) return;
  if (values instanceof BigInt64Array) {
    for (let i = 0; i < values.length; i++) values[i] = values[i]! + BigInt(shift);
  } else {
    const rows = values as Int32Array;
    for (let i = 0; i < rows.length; i++) if (rows[i]! >= 0) rows[i] = rows[i]! + shift;
  }
}

function placeSegments(opened: readonly OpenedSegment[]): PlacedSegment[] {
  const next = Object.fromEntries(TABLE_NAMES.map((table) => [table, 0])) as Record<TableName, number>;
  return opened.map(({ reader }, index) => {
    const first = { ...next };
    for (const table of TABLE_NAMES) next[table] += reader.rows(table);
    return { index, reader, first };
  });
}

/** Reads the manifest together with a matching root. A restored old manifest is refused, because segments that it does
 *  not list would count as orphans. A commit replaces one file, then the other, so a mismatch is read again. */
export function readCurrentManifest(root: string): ReplayManifest {
  for (let attempt = 0; ; attempt++) {
    const manifest = readManifest(root);
    const fault = rootFault(root, manifest);
    if (fault === undefined) return manifest;
    if (attempt === 2)
      throw new RollbookError("replay-bad-root", { root }, `${join(root, ROOT_FILE)}: ${fault}`);
  }
}

/** Fault of the root group of a segmented store, given its manifest. The root of a plain store is checked as the
 *  metadata of its only segment. */
export function rootFault(root: string, { layout, generation }: ReplayManifest): string | undefined {
  if (layout === "plain") return undefined;
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(join(root, ROOT_FILE));
  } catch (error) {
    if (!isMissing(error)) throw error;
    return `the file is missing. Restore it from a copy.`;
  }
  const found = rootGeneration(bytes);
  // A writer that died between its last two renames leaves the root one commit behind.
  if (found === generation || found === generation - 1) return undefined;
  return found !== undefined && found > generation
    ? `the store was committed ${found} times, ${MANIFEST_FILE} is of commit ${generation}: it is stale. Restore the newest manifest.`
    : `the root group is not what the writer wrote. Restore it from a copy.`;
}
