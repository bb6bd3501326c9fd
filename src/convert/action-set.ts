/** The candidates of a log whose rows do not list them: given beforehand, or found by a pass over the whole file.
 *  In: decisions, streamed. Out: the number of candidates of every row, and their names if they have names.
 *  A set taken from one row would depend on the choice made there, and every propensity would be wrong. */
import { RollbookError } from "../base/index.ts";
import { badRow, type ForeignDecision } from "./foreign-decision.ts";

export interface ActionSet {
  readonly count: number;
  readonly names?: readonly string[];
}

/** Finds the set in a first pass over decisions that are numbered from 0. */
export async function findActions(
  decisions: AsyncIterable<ForeignDecision>,
  file: string,
): Promise<ActionSet> {
  let count = 0;
  for await (const { action, actions } of decisions) count = Math.max(count, action + 1, actions ?? 0);
  return checkFound({ count }, file);
}

/** Adds the set to each decision. A choice outside it, or another number of candidates, throws with its line. */
export async function* withActions(
  decisions: AsyncIterable<ForeignDecision>,
  { count, file }: { count: number; file: string },
): AsyncGenerator<ForeignDecision> {
  for await (const decision of decisions) {
    const { line, action, actions = count } = decision;
    if (decision.names !== undefined) {
      yield decision;
      continue;
    }
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

export function checkFound(found: ActionSet, file: string): ActionSet {
  if (found.count !== 1) return found;
  const [name] = found.names ?? [];
  const all = name === undefined ? "--actions 2, if there are two" : `--actions ${name},OTHER`;
  throw new RollbookError(
    "one-action",
    { file },
    `${file}: every row has the model ${name ?? 0}, so the file does not say what else could have been chosen. Name all candidates: ${all}.`,
  );
}
