/** Full information: a table with one row per question and one outcome column per candidate.
 *  In: a path (CSV, JSON Lines or Parquet, by its name) and a column map. Out: decisions without propensities, whose
 *  candidates all have outcomes. The id of a row is a column, else the digest of its content. */
import { IMPORTED_FAMILY } from "../../contract/index.ts";
import type { LoggedRow, RewardTerms } from "../../learn/index.ts";
import { badRow, type LinePlace, toField, toNumber, toReward } from "../foreign-decision.ts";
import { RowIdentities, taskOfQuestion } from "../row-identity.ts";
import { type CellRow, readCells, type TableCell, type TableForm } from "./cell-rows.ts";
import { CategoryTally } from "./survey-table.ts";

export interface OutcomeColumns {
  /** One column per candidate: its quality, as a number or as true and false. */
  readonly outcomes: readonly string[];
  readonly prompt?: string;
  /** One column per candidate in the same order, or one pattern with {} for the outcome's column. */
  readonly costs?: readonly string[];
  readonly features?: readonly string[];
  readonly id?: string;
  /** Rows of one task stay in the same split. */
  readonly task?: string;
}

export async function* readOutcomes(
  file: string,
  {
    columns,
    source,
    form,
  }: { columns: OutcomeColumns; source: LoggedRow["source"]; form?: TableForm | undefined },
): AsyncGenerator<LoggedRow> {
  const costs = costColumns(columns);
  const { prompt, id, task, features = [], outcomes } = columns;
  const wanted = [...outcomes, ...costs, ...features, prompt, id, task].filter((name) => name !== undefined);
  const identities = new RowIdentities();
  const categories = new CategoryTally(features);
  let rows = 0;
  for await (const { cell, place } of readCells(file, { form, columns: [...new Set(wanted)] })) {
    categories.add(cell, ++rows);
    yield rowFrom(cell, { columns, costs, source, place, identities });
  }
  categories.check(file, rows);
}

function costColumns({ outcomes, costs = [] }: OutcomeColumns): readonly string[] {
  const [pattern] = costs;
  if (costs.length === 1 && pattern!.includes("{}"))
    return outcomes.map((name) => pattern!.replace("{}", name));
  return costs;
}

function rowFrom(
  cell: CellRow["cell"],
  options: {
    columns: OutcomeColumns;
    costs: readonly string[];
    source: LoggedRow["source"];
    place: LinePlace;
    identities: RowIdentities;
  },
): LoggedRow {
  const { columns, costs, source, place, identities } = options;
  const text = (name: string) => String(cell(name) ?? "");
  const prompt = columns.prompt === undefined ? "" : text(columns.prompt);
  const fields = Object.fromEntries(
    (columns.features ?? []).flatMap((name) => toField(name, cell(name))),
  ) as LoggedRow["context"]["fields"];
  const candidates = columns.outcomes.map((name, i) => {
    const quality = qualityOf(cell(name), name, place);
    const cost = costs[i] === undefined ? undefined : toNumber(cell(costs[i]!), costs[i]!, place);
    return {
      ...{ id: name, selectable: true, reasons: [], probability: null, features: {} },
      outcome: { reward: quality, terms: termsOf(quality, cost) },
    };
  });
  const context = { prompt, fields };
  const id =
    columns.id === undefined
      ? identities.nameOf("rollbook.outcome-row.v1", { context, candidates })
      : identities.numbered(text(columns.id));
  const { reward, terms } = candidates[0]!.outcome;
  return {
    id,
    chain: id,
    session: id,
    task: columns.task === undefined ? taskOfQuestion(context, id) : text(columns.task),
    ...{ family: IMPORTED_FAMILY, atMs: 0, source, context, candidates },
    // No policy chose. The first candidate fills the field of the choice, without a probability.
    ...{ chosen: 0, propensity: null, reward, terminal: true, terms, rewardFrom: "imported" },
  };
}

function termsOf(quality: number, cost: number | undefined): RewardTerms {
  if (cost === undefined) return {};
  return { quality: { value: quality, weight: 1 }, cost: { value: cost, weight: 0 } };
}

function qualityOf(value: TableCell, name: string, place: LinePlace): number {
  const quality = toReward(value, name, place);
  if (quality !== undefined) return quality;
  throw badRow(
    place,
    `${name} is empty`,
    "Every candidate needs an outcome; leave the row or the column out",
  );
}
