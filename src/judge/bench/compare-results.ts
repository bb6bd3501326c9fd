/** Compares two results of one suite, for example before and after a change:
 *  arm by arm, paired by task and repetition. */
import { isObject, parseJson, RollbookError } from "../../base/index.ts";
import { type PairedDifference, pairedDifference } from "./paired-arms.ts";
import type { BenchResult } from "./result.ts";

export interface ArmChange {
  readonly name: string;
  readonly before: number;
  readonly after: number;
  /** Exact reward after minus before. */
  readonly change: PairedDifference;
}

export function compareResults(before: BenchResult, after: BenchResult, level = 0.95): ArmChange[] {
  if (before.world !== after.world || before.seed !== after.seed || before.repetitions !== after.repetitions)
    throw new RollbookError(
      "other-suite",
      { before: before.world, after: after.world },
      "the results are of other tasks, models, rewards, seeds or repetitions, so they cannot be paired. Run both with one suite.",
    );
  const shared = after.arms.filter(({ name }) => before.arms.some((arm) => arm.name === name));
  if (shared.length === 0)
    throw new RollbookError(
      "no-shared-arm",
      {},
      "the results share no arm. Give arms the same names in both.",
    );
  return shared.map((arm) => {
    const old = before.arms.find(({ name }) => name === arm.name)!;
    const cells = arm.cells.map((row, r) => row.map((value, task) => value - old.cells[r]![task]!));
    return {
      ...{ name: arm.name, before: old.exact.reward, after: arm.exact.reward },
      change: pairedDifference(cells, level),
    };
  });
}

/** Parses a result file; `where` names it in errors. */
export function parseResult(text: string, where: string): BenchResult {
  let value: unknown;
  try {
    value = parseJson(text, where);
  } catch (cause) {
    throw notResult(where, "it is not one JSON object", cause);
  }
  if (!isObject(value) || value.schema !== "rollbook.bench-result.v1")
    throw notResult(where, "its schema is not rollbook.bench-result.v1");
  return value as unknown as BenchResult;
}

function notResult(where: string, reason: string, cause?: unknown): RollbookError {
  return new RollbookError(
    "bad-result",
    { where },
    `${where} is not a result of \`rollbook bench run\`: ${reason}. Name a file that \`rollbook bench run --suite NAME --out FILE\` wrote.`,
    { cause },
  );
}
