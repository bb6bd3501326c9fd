/** Writes one segment: rows of all tables, then dictionaries, the dense view, groups and consolidated metadata.
 *  In: rows. Out: a Zarr tree on disk and its entry for the manifest. Holds a few chunks, the texts, and a few hundred
 *  bytes per source in memory. The caller begins a new segment before these become too many. */
import {
  canonicalize,
  type Digest,
  DigestTable,
  digestBytes,
  digestJson,
  digestToBytes,
  RollbookError,
} from "../../../base/index.ts";
import type { ReplaySegment, ReplayWriter } from "../../../contract/index.ts";
import {
  Dictionary,
  FACT_TABLES,
  HashedSets,
  type ReasonNames,
  type Returns,
  SCHEMA_ID,
  SCHEMA_VERSION,
  SegmentReader,
  TABLE_NAMES,
  type TableName,
  tableOf,
} from "../tables/index.ts";
import {
  bytesOver,
  consolidate,
  FileStore,
  METADATA_TAG,
  type WrittenArray,
  writeGroup,
} from "../zarr/index.ts";
import { writeDenseView } from "./dense-writer.ts";
import { type Layout, TableWriter } from "./table-writer.ts";

export type FactTable = Exclude<TableName, "q_h">;

interface SegmentOptions {
  /** Directory of the segment, and its path in the store. */
  readonly directory: string;
  readonly path: string;
  readonly returns: Returns;
  readonly layout: Layout;
  readonly reasons: ReasonNames;
  readonly writer: ReplayWriter;
  readonly createdAtMs: number;
  /** False: no fsync; for stores that need not survive a crash. */
  readonly durable: boolean;
}

type Widths = Pick<ReplaySegment, "maxCandidates" | "maxContext" | "maxFeatures">;

export interface SourceRow {
  task: string;
  taskDigest: string | undefined;
  environment: string;
  split: string | undefined;
  dataSource: string;
  features: Float32Array;
}

export interface TargetRow {
  config: string | undefined;
  reward: string;
  invalidReason: string | undefined;
}

export class SegmentWriter {
  readonly tables: { readonly [T in FactTable]: TableWriter<T> };
  readonly texts = new Dictionary();
  readonly hashes = new HashedSets();
  readonly #options: SegmentOptions;
  readonly #store: FileStore;
  readonly #sources = new DigestTable();
  readonly #targets = new DigestTable();
  readonly #validTargets: boolean[] = [];
  readonly #widest = { maxCandidates: 0, maxContext: 0, maxFeatures: 0 };

  constructor(options: SegmentOptions) {
    this.#options = options;
    this.#store = new FileStore(options.directory);
    this.tables = Object.fromEntries(
      FACT_TABLES.map((table) => [table, new TableWriter(this.#store, table, { layout: options.layout })]),
    ) as unknown as SegmentWriter["tables"];
  }

  get options(): SegmentOptions {
    return this.#options;
  }

  /** Row of a source; a new source is added. */
  source(source: SourceRow): number {
    const key = sourceKey(source);
    const { texts, tables } = this;
    const known = this.#sources.addBytes(key);
    if (known < tables.sources.rows) return known;
    this.saw("maxContext", source.features.length);
    const start = tables.source_features.rows;
    for (const value of source.features) tables.source_features.add({ value });
    this.hashes.addSplit(source);
    return tables.sources.add({
      key,
      task: texts.id(source.task),
      task_digest: texts.maybe(source.taskDigest),
      environment: texts.id(source.environment),
      split: texts.maybe(source.split),
      data_source: texts.id(source.dataSource),
      features_start: BigInt(start),
      features_length: source.features.length,
    });
  }

  /** Row of a target; a new target is added. */
  target(target: TargetRow): number {
    const key = targetKey(target);
    const known = this.#targets.addBytes(key);
    if (known < this.tables.targets.rows) return known;
    this.#validTargets.push(target.invalidReason === undefined);
    return this.tables.targets.add({
      key,
      config: this.texts.maybe(target.config),
      reward: this.texts.id(target.reward),
      valid: target.invalidReason === undefined,
      invalid_reason: this.texts.maybe(target.invalidReason),
    });
  }

  validTarget(row: number): boolean {
    return this.#validTargets[row]!;
  }

  /** Records the width of a row: readers and the dense view pad to the widest. */
  saw(width: keyof Widths, count: number): void {
    this.#widest[width] = Math.max(this.#widest[width], count);
  }

  async drain(): Promise<void> {
    for (const table of FACT_TABLES) await this.tables[table as FactTable].drain();
  }

  /** Finishes the tree. When it resolves, all of it is on disk, unless `durable` is false. */
  async close(): Promise<ReplaySegment> {
    const { path, createdAtMs, writer, returns, layout, reasons, durable } = this.#options;
    for (const text of this.texts.texts()) this.tables.dictionary.add({ text });
    for (const name of reasons.names) this.tables.reasons.add({ name });
    const written: WrittenArray[] = [];
    for (const table of FACT_TABLES) written.push(...(await this.tables[table as FactTable].close()));
    const rows = Object.fromEntries(
      TABLE_NAMES.map((table) => [table, this.tables[table === "q_h" ? "steps" : table].rows]),
    );
    refuseTooMany(rows);
    const widths = { ...this.#widest };
    const metadata = new Map(written.map((array) => [array.path, array.metadata]));
    const reader = new SegmentReader(this.#store, { metadata, rows, maxCandidates: widths.maxCandidates });
    written.push(...(await writeDenseView(this.#store, reader, { returns, layout })));
    const hashes = this.hashes.digests();
    const groups = await this.#writeGroups({ rows, widths, hashes });
    if (durable) await this.#store.commit();
    this.#store.close();
    const arrays = Object.fromEntries(written.map((array) => [array.path, array.digests.array]));
    return { path, createdAtMs, writer, rows, ...widths, hashes, groups, arrays };
  }

  async #writeGroups(facts: {
    rows: Record<string, number>;
    widths: Widths;
    hashes: Record<string, Digest>;
  }): Promise<Record<string, Digest>> {
    const { returns, reasons, path } = this.#options;
    await writeGroup(this.#store, "", {
      schema: SCHEMA_ID,
      version: SCHEMA_VERSION,
      layout: path === "" ? "plain" : "segment",
      returns: { ...returns },
      widths: { ...facts.widths },
      rows: facts.rows,
      hashes: facts.hashes,
    });
    for (const table of TABLE_NAMES) {
      const version = table === "reasons" ? { version: reasons.version } : {};
      await writeGroup(this.#store, table, { description: tableOf(table).doc, ...version });
    }
    await consolidate(this.#store, "");
    const digests: Record<string, Digest> = {};
    for (const group of ["", ...TABLE_NAMES]) {
      const bytes = await this.#store.get(group === "" ? "zarr.json" : `${group}/zarr.json`);
      digests[group] = digestBytes(METADATA_TAG, bytes!);
    }
    return digests;
  }
}

/** Key of a source row; the validator recomputes it from the columns. */
export function sourceKey(source: SourceRow): Uint8Array {
  const features = digestBytes("rollbook.replay.features", bytesOver(source.features));
  const parts = [source.task, source.taskDigest ?? null, source.environment];
  const all = [...parts, source.split ?? null, source.dataSource, features];
  return digestToBytes(digestJson("rollbook.replay.source", all));
}

export function targetKey({ config, reward, invalidReason }: TargetRow): Uint8Array {
  const text = canonicalize([config ?? null, reward, invalidReason ?? null]);
  return digestToBytes(digestBytes("rollbook.replay.target", Buffer.from(text)));
}

/** Row numbers are int32, so too many rows are refused. */
function refuseTooMany(rows: Record<string, number>): void {
  for (const table of ["chains", "steps", "candidates", "dictionary", "sources"]) {
    const count = rows[table]!;
    if (count > 2 ** 31 - 1)
      throw new RollbookError(
        "too-many-rows",
        { table, count },
        `${table} would have ${count} rows; one Zarr tree holds at most 2^31-1. Keep the store segmented, or write several.`,
      );
  }
}
