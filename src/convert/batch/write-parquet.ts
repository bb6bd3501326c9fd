/** A batch as a Parquet file: one row per row of the batch, lists for what is ragged, Snappy pages.
 *  In: a batch. Out: the file, one row group after the other; memory is bounded by one shard.
 *  Provenance stands in the key-value metadata of the file. */
import { ByteWriter, ParquetWriter, type SchemaElement } from "hyparquet-writer";
import type { ReadableBatch, StepBatchRow, TokenBatchRow } from "../../keep/batch/index.ts";
import type { NewFile } from "./new-file.ts";
import { PROVENANCE_KEY, provenanceOf } from "./provenance.ts";

/** A row group ends with the row that reaches one of these. */
const GROUP_VALUES = 1 << 17;
const GROUP_ROWS = 1 << 15;
const FLUSH_BYTES = 1 << 20;

type ParquetLeaf = Pick<SchemaElement, "type" | "converted_type" | "repetition_type">;

const TEXT: ParquetLeaf = { type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "REQUIRED" };
const U8: ParquetLeaf = { type: "INT32", converted_type: "UINT_8", repetition_type: "REQUIRED" };
const U32: ParquetLeaf = { type: "INT32", converted_type: "UINT_32", repetition_type: "REQUIRED" };
const I64: ParquetLeaf = { type: "INT64", repetition_type: "REQUIRED" };
const F32: ParquetLeaf = { type: "FLOAT", repetition_type: "REQUIRED" };
const F64: ParquetLeaf = { type: "DOUBLE", repetition_type: "REQUIRED" };
const FLAG: ParquetLeaf = { type: "BOOLEAN", repetition_type: "REQUIRED" };
const orNull = (leaf: ParquetLeaf): ParquetLeaf => ({ ...leaf, repetition_type: "OPTIONAL" });

interface ParquetColumn<Row> {
  readonly name: string;
  readonly leaf: ParquetLeaf;
  /** 0: a value per row; 1: a list; 2: a list of lists. */
  readonly depth: 0 | 1 | 2;
  value(row: Row): unknown;
}

type AnyRow = TokenBatchRow | StepBatchRow;

const ROW_COLUMNS: readonly ParquetColumn<AnyRow>[] = [
  { name: "content", leaf: TEXT, depth: 0, value: (row) => row.content },
  { name: "stream", leaf: I64, depth: 0, value: (row) => BigInt(row.stream) },
  { name: "rollout_id", leaf: TEXT, depth: 0, value: (row) => row.rolloutId },
  { name: "group", leaf: orNull(TEXT), depth: 0, value: (row) => row.group ?? null },
  { name: "weight_bps", leaf: I64, depth: 0, value: (row) => BigInt(row.weightBps) },
  { name: "samples", leaf: I64, depth: 0, value: (row) => BigInt(row.samples) },
  { name: "reward", leaf: F64, depth: 0, value: (row) => row.reward },
  { name: "segment_start", leaf: I64, depth: 1, value: (row) => row.segments.map((s) => BigInt(s.start)) },
  { name: "segment_end", leaf: I64, depth: 1, value: (row) => row.segments.map((s) => BigInt(s.end)) },
  { name: "segment_revision", leaf: TEXT, depth: 1, value: (row) => row.segments.map((s) => s.revision.id) },
  {
    name: "segment_digest",
    leaf: TEXT,
    depth: 1,
    value: (row) => row.segments.map((s) => s.revision.digest),
  },
];

const TOKEN_COLUMNS: readonly ParquetColumn<TokenBatchRow>[] = [
  { name: "ids", leaf: U32, depth: 1, value: (row) => Array.from(row.ids) },
  { name: "logprobs", leaf: F32, depth: 1, value: (row) => Array.from(row.logprobs) },
  { name: "mask", leaf: U8, depth: 1, value: (row) => Array.from(row.mask) },
  { name: "turns", leaf: U32, depth: 1, value: (row) => Array.from(row.turns) },
  { name: "rewards", leaf: F32, depth: 1, value: (row) => Array.from(row.rewards) },
  { name: "advantages", leaf: F32, depth: 1, value: (row) => Array.from(row.advantages) },
];

const ofSteps =
  <T>(value: (step: StepBatchRow["steps"][number]) => T) =>
  (row: StepBatchRow) =>
    row.steps.map(value);
const ofCandidates = <T>(value: (one: StepBatchRow["steps"][number]["candidates"][number]) => T) =>
  ofSteps((step) => step.candidates.map(value));

const STEP_COLUMNS: readonly ParquetColumn<StepBatchRow>[] = [
  { name: "chosen", leaf: U32, depth: 1, value: ofSteps((step) => step.chosen) },
  { name: "probability", leaf: F64, depth: 1, value: ofSteps((step) => step.probability) },
  { name: "rewards", leaf: F64, depth: 1, value: ofSteps((step) => step.reward) },
  { name: "advantages", leaf: F64, depth: 1, value: ofSteps((step) => step.advantage) },
  { name: "candidate_ids", leaf: TEXT, depth: 2, value: ofCandidates((one) => one.id) },
  {
    name: "candidate_probability",
    leaf: orNull(F64),
    depth: 2,
    value: ofCandidates((one) => one.probability),
  },
  { name: "candidate_selectable", leaf: FLAG, depth: 2, value: ofCandidates((one) => one.selectable) },
];

export async function writeParquet(batch: ReadableBatch, file: NewFile): Promise<void> {
  if (batch.level === "token")
    await writeRows(batch, batch.rows(), [...ROW_COLUMNS, ...TOKEN_COLUMNS], (row) => row.ids.length, file);
  else await writeRows(batch, batch.rows(), [...ROW_COLUMNS, ...STEP_COLUMNS], candidatesIn, file);
}

async function writeRows<Row>(
  batch: ReadableBatch,
  rows: AsyncGenerator<Row>,
  columns: readonly ParquetColumn<Row>[],
  sizeOf: (row: Row) => number,
  file: NewFile,
): Promise<void> {
  const parquet = new ParquetWriter({
    writer: new FileBytes(file),
    schema: schemaOf(columns),
    kvMetadata: [{ key: PROVENANCE_KEY, value: provenanceOf(batch) }],
  });
  let group: Row[] = [];
  let values = 0;
  const writeGroup = async () => {
    await parquet.write({
      columnData: columns.map((column) => dataOf(column, group)),
      rowGroupSize: group.length,
    });
    group = [];
    values = 0;
  };
  for await (const row of rows) {
    group.push(row);
    values += sizeOf(row);
    if (values >= GROUP_VALUES || group.length >= GROUP_ROWS) await writeGroup();
  }
  if (group.length > 0) await writeGroup();
  await parquet.finish();
}

function dataOf<Row>({ name, leaf, value }: ParquetColumn<Row>, rows: readonly Row[]) {
  const data = rows.map(value);
  // A dictionary takes 0 and -0 for one value.
  return leaf.type === "FLOAT" || leaf.type === "DOUBLE"
    ? { name, data, encoding: "PLAIN" as const, offsetIndex: false }
    : { name, data, offsetIndex: false };
}

function schemaOf<Row>(columns: readonly ParquetColumn<Row>[]): SchemaElement[] {
  return [{ name: "batch", num_children: columns.length }, ...columns.flatMap(elementsOf)];
}

function elementsOf<Row>({ name, leaf, depth }: ParquetColumn<Row>): SchemaElement[] {
  const elements: SchemaElement[] = [];
  for (let level = 0; level < depth; level++)
    elements.push(
      {
        name: level === 0 ? name : "element",
        repetition_type: "REQUIRED",
        converted_type: "LIST",
        num_children: 1,
      },
      { name: "list", repetition_type: "REPEATED", num_children: 1 },
    );
  return [...elements, { name: depth === 0 ? name : "element", ...leaf }];
}

function candidatesIn(row: StepBatchRow): number {
  return row.steps.reduce((sum, step) => sum + step.candidates.length, 0);
}

/** The bytes of the Parquet writer, handed on to a file whenever there are many. */
class FileBytes extends ByteWriter {
  readonly #file: NewFile;

  constructor(file: NewFile) {
    super(FLUSH_BYTES);
    this.#file = file;
  }

  override ensure(size: number): void {
    if (this.index > FLUSH_BYTES) this.flush();
    super.ensure(size);
  }

  flush(): void {
    this.#file.append(this.getBytes().slice());
    this.index = 0;
  }

  override finish(): void {
    this.flush();
  }
}
