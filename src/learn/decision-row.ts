/** One decision as the trainers see it: the question, the candidates, the choice, its probability, its outcome. */
import type { Digest } from "../base/digest.ts";
import { RollbookError } from "../base/errors.ts";
import { compareUtf8 } from "../base/ids.ts";
import type { DecisionCandidate, DecisionContext } from "../policy/decision.ts";

export interface DecisionRow {
  /** Joins decision and outcome; no two rows share one. */
  readonly id: string;
  readonly context: DecisionContext;
  readonly candidates: readonly DecisionCandidate[];
  readonly chosen: number;
  /** Of the choice; null where it was not logged. */
  readonly propensity: number | null;
  /** Null: unlabelled, which is never 0. */
  readonly reward: number | null;
}

/** Rows with the digest of where they come from: what a training is a function of. */
export interface DecisionData {
  readonly rows: readonly DecisionRow[];
  readonly digest: Digest;
  /** Trainer batches behind the rows, where there are any. */
  readonly batches: readonly Digest[];
}

/** The candidates that occur, sorted. */
export function armsOf(rows: readonly DecisionRow[]): string[] {
  return [...new Set(rows.flatMap((row) => row.candidates.map((one) => one.id)))].sort(compareUtf8);
}

/** The rows with an outcome, by id: the order in which bandits learn, whatever order they came in. */
export function labelledRows(rows: readonly DecisionRow[]): (DecisionRow & { reward: number })[] {
  const seen = new Set<string>();
  for (const [i, row] of rows.entries()) {
    if (seen.has(row.id)) throw badRow(i, row, "its id occurs twice. One decision has one outcome");
    seen.add(row.id);
    if (row.candidates[row.chosen] === undefined)
      throw badRow(i, row, `it chose candidate ${row.chosen} of ${row.candidates.length}. Repair the row`);
    if (row.reward !== null && !Number.isFinite(row.reward))
      throw badRow(i, row, `its reward is ${row.reward}. Repair the row or leave it out`);
  }
  const labelled = rows.filter((row): row is DecisionRow & { reward: number } => row.reward !== null);
  if (labelled.length === 0)
    throw new RollbookError(
      "empty-split",
      { rows: rows.length },
      `none of the ${rows.length} rows has a reward: there is nothing to learn from. Record outcomes first.`,
    );
  return [...labelled].sort((a, b) => compareUtf8(a.id, b.id));
}

function badRow(index: number, row: DecisionRow, what: string): RollbookError {
  return new RollbookError(
    "bad-training-data",
    { row: index, id: row.id },
    `row ${index} (${row.id}): ${what}.`,
  );
}
