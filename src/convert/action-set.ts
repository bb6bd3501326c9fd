/** The candidates of a log whose rows do not list them: stated beforehand, or found by a pass over the whole file.
 *  In: decisions or CSV records, streamed. Out: how many candidates every row had, and their names where they have any.
 *  A set taken from one row would depend on the choice made there, and every propensity would be wrong. */
import { compareUtf8, RollbookError } from "../base/index.ts";
import { readTable } from "./csv-records.ts";
import { badRow, type ForeignDecision } from "./foreign-decision.ts";

export interface ActionSet {
  readonly count: number;
  readonly names?: readonly string[];
}

/** More candidates than this are another column: ids, prompts. */
const MAX_FOUND = 1000;

/** From the first pass over decisions that are numbered from 0. */
export async function findActions(
  decisions: AsyncIterable<ForeignDecision>,
  file: string,
): Promise<ActionSet> {
  let count = 0;
  for await (const { action, actions } of decisions) count = Math.max(count, action + 1, actions ?? 0);
  return checkFound({ count }, file);
}

/** From the first pass over a CSV: 0, 1, 2 … are numbers, anything else names. */
export async function findNamedActions(file: string, column: string): Promise<ActionSet> {
  const seen = new Set<string>();
  const choices = readTable(file, [column], (header) => {
    const at = header.get(column)!;
    return ({ fields, line }) => ({ name: fields[at]!, line });
  });
  for await (const { name, line } of choices) {
    if (name !== "") seen.add(name);
    if (seen.size > MAX_FOUND)
      throw badRow(
        { file, line },
        `column ${column} holds more than ${MAX_FOUND} different actions`,
        "Name the column of the choice, or state --actions",
      );
  }
  const numbered = [...seen.keys()].every((_, i) => seen.has(String(i)));
  const names = [...seen].sort(compareNames);
  return checkFound({ count: seen.size, ...(numbered ? {} : { names }) }, file);
}

/** Every decision with the whole set. A choice outside it, or a row with another number of candidates, stops with its line. */
export async function* withActions(
  decisions: AsyncIterable<ForeignDecision>,
  { count, file }: { count: number; file: string },
): AsyncGenerator<ForeignDecision> {
  for await (const decision of decisions) {
    const { line, action, actions = count } = decision;
    if (actions !== count)
      throw badRow({ file, line }, `the row has ${actions} candidates, not ${count}`, "Correct --actions");
    if (action >= count)
      throw badRow(
        { file, line },
        `action ${action} is not in 0 … ${count - 1}`,
        "Number the candidates from 0, and state all of them in --actions",
      );
    yield { ...decision, actions };
  }
}

function checkFound(found: ActionSet, file: string): ActionSet {
  if (found.count !== 1) return found;
  throw new RollbookError(
    "one-action",
    { file },
    `${file}: every row has the same action, so the file does not say what else could have been chosen. State --actions.`,
  );
}

/** 9 before 10 where both are numbers. */
function compareNames(a: string, b: string): number {
  const gap = Number(a) - Number(b);
  return Number.isNaN(gap) || gap === 0 ? compareUtf8(a, b) : gap;
}
