/** A batch as a Parquet file: one row per row of the batch, lists for ragged values, Snappy pages.
 *  In: a batch. Out: the file, one row group after the other; memory is bounded by one shard.
 *  The key-value metadata of the file holds the provenance. */
import type { ReadableBatch, StepBatchRow, TokenBatchRow } from "../../keep/batch/index.ts";
import type { NewFile } from "../new-file.ts";
import {
  F32,
  F64,
  FLAG,
  I64,
  list,
  orNull,
  type ParquetColumn,
  TEXT,
  U8,
  U32,
  writeParquetRows,
} from "../parquet/index.ts";
import { PROVENANCE_KEY, provenanceOf } from "./provenance.ts";

type AnyRow = TokenBatchRow | StepBatchRow;

const ROW_COLUMNS: readonly ParquetColumn<AnyRow>[] = [
  { name: "content", type: TEXT, value: (row) => row.content },
  { name: "stream", type: I64, value: (row) => BigInt(row.stream) },
  { name: "rollout_id", type: TEXT, value: (row) => row.rolloutId },
  { name: "group", type: orNull(TEXT), value: (row) => row.group ?? null },
  { name: "weight_bps", type: I64, value: (row) => BigInt(row.weightBps) },
  { name: "samples", type: I64, value: (row) => BigInt(row.samples) },
  { name: "reward", type: F64, value: (row) => row.reward },
  { name: "segment_start", type: list(I64), value: (row) => row.segments.map((s) => BigInt(s.start)) },
  { name: "segment_end", type: list(I64), value: (row) => row.segments.map((s) => BigInt(s.end)) },
  { name: "segment_revision", type: list(TEXT), value: (row) => row.segments.map((s) => s.revision.id) },
  {
    name: "segment_digest",
    type: list(TEXT),
    value: (row) => row.segments.map((s) => s.revision.digest),
  },
];

const TOKEN_COLUMNS: readonly ParquetColumn<TokenBatchRow>[] = [
  { name: "ids", type: list(U32), value: (row) => Array.from(row.ids) },
  { name: "logprobs", type: list(F32), value: (row) => Array.from(row.logprobs) },
  { name: "mask", type: list(U8), value: (row) => Array.from(row.mask) },
  { name: "turns", type: list(U32), value: (row) => Array.from(row.turns) },
  { name: "rewards", type: list(F32), value: (row) => Array.from(row.rewards) },
  { name: "advantages", type: list(F32), value: (row) => Array.from(row.advantages) },
];

const ofSteps =
  <T>(value: (step: StepBatchRow["steps"][number]) => T) =>
  (row: StepBatchRow) =>
    row.steps.map(value);
const ofCandidates = <T>(value: (one: StepBatchRow["steps"][number]["candidates"][number]) => T) =>
  ofSteps((step) => step.candidates.map(value));

const STEP_COLUMNS: readonly ParquetColumn<StepBatchRow>[] = [
  { name: "chosen", type: list(U32), value: ofSteps((step) => step.chosen) },
  { name: "probability", type: list(F64), value: ofSteps((step) => step.probability) },
  { name: "rewards", type: list(F64), value: ofSteps((step) => step.reward) },
  { name: "advantages", type: list(F64), value: ofSteps((step) => step.advantage) },
  { name: "candidate_ids", type: list(list(TEXT)), value: ofCandidates((one) => one.id) },
  {
    name: "candidate_probability",
    type: list(list(orNull(F64))),
    value: ofCandidates((one) => one.probability),
  },
  { name: "candidate_selectable", type: list(list(FLAG)), value: ofCandidates((one) => one.selectable) },
];

export async function writeParquet(batch: ReadableBatch, file: NewFile): Promise<void> {
  const metadata = { [PROVENANCE_KEY]: provenanceOf(batch) };
  if (batch.level === "token")
    await writeParquetRows(
      {
        ...{ rows: batch.rows(), columns: [...ROW_COLUMNS, ...TOKEN_COLUMNS], metadata },
        sizeOf: (row) => row.ids.length,
      },
      file,
    );
  else
    await writeParquetRows(
      { rows: batch.rows(), columns: [...ROW_COLUMNS, ...STEP_COLUMNS], metadata, sizeOf: candidatesIn },
      file,
    );
}

function candidatesIn(row: StepBatchRow): number {
  return row.steps.reduce((sum, step) => sum + step.candidates.length, 0);
}
