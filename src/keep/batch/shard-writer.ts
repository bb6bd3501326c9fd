/** Second pass of assembly: copies the numbers of selected rows into shards. Holds one shard in memory at a time. */
import {
  bytesOf,
  type Column,
  type ColumnOf,
  columnTag,
  type Digest,
  type DType,
  digestColumn,
  dtypeOf,
  GrowingColumn,
} from "../../base/index.ts";
import {
  type BatchRow,
  BatchShard,
  type ColumnRef,
  type Sealed,
  seal,
  TOKEN_COLUMNS,
} from "../../contract/index.ts";

/** Stores a blob under its digest. */
export type WriteBlob = (blob: { kind: string; digest: Digest; bytes: Uint8Array }) => void;

const STEP_TYPES = {
  chosen: "u32",
  probability: "f64",
  rewards: "f64",
  advantages: "f64",
  candidateCounts: "u32",
  candidateIds: "u32",
  candidateProbability: "f64",
  candidateSelectable: "u8",
} as const;

export type TokenRowColumns = { [K in keyof typeof TOKEN_COLUMNS]: ColumnOf[(typeof TOKEN_COLUMNS)[K]] };
export type StepRowColumns = { [K in keyof typeof STEP_TYPES]: ArrayLike<number> };

interface ShardSummary {
  digest: Digest;
  rows: number;
  samples: number;
}

export class ShardWriter {
  readonly shards: ShardSummary[] = [];
  readonly #write: WriteBlob;
  readonly #limit: number;
  readonly #columns: Record<string, GrowingColumn>;
  readonly #level: "token" | "step";
  #rows: BatchRow[] = [];
  #candidates = new Map<string, number>();

  constructor(options: { level: "token" | "step"; shardTokens: number; write: WriteBlob }) {
    this.#level = options.level;
    this.#limit = options.shardTokens;
    this.#write = options.write;
    const types: Record<string, DType> = options.level === "token" ? TOKEN_COLUMNS : STEP_TYPES;
    this.#columns = Object.fromEntries(
      Object.entries(types).map(([name, dtype]) => [name, new GrowingColumn(dtype)]),
    );
  }

  /** Offset of the next row within its shard. */
  get position(): number {
    const last = this.#rows.at(-1);
    return last === undefined ? 0 : last.start + last.length;
  }

  /** Number of a candidate name within the current shard. */
  candidateNumber(name: string): number {
    const known = this.#candidates.get(name) ?? this.#candidates.size;
    this.#candidates.set(name, known);
    return known;
  }

  add(row: Omit<BatchRow, "start">, columns: TokenRowColumns | StepRowColumns): void {
    this.#rows.push({ ...row, start: this.position });
    for (const [name, values] of Object.entries(columns)) this.#columns[name]!.append(values);
    if (this.position >= this.#limit) this.close();
  }

  close(): void {
    if (this.#rows.length === 0) return;
    const columns: Record<string, ColumnRef> = {};
    for (const [name, growing] of Object.entries(this.#columns)) columns[name] = this.#store(growing.take());
    const data =
      this.#level === "token"
        ? { level: this.#level, columns }
        : { level: this.#level, columns, candidates: [...this.#candidates.keys()] };
    const shard: Sealed<BatchShard> = seal(BatchShard, {
      rows: this.#rows,
      data: data as unknown as BatchShard["data"],
    });
    this.#write(shard);
    this.shards.push({
      digest: shard.digest,
      rows: this.#rows.length,
      samples: this.#rows.reduce((sum, row) => sum + row.samples, 0),
    });
    this.#rows = [];
    this.#candidates = new Map();
  }

  #store(column: Column): ColumnRef {
    const dtype = dtypeOf(column);
    const digest = digestColumn(column);
    this.#write({ kind: columnTag(dtype), digest, bytes: bytesOf(column) });
    return { digest, dtype, length: column.length };
  }
}
