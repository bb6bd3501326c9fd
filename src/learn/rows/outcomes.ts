/** Known outcomes of each decision's candidates: of the chosen one, or of all (full information).
 *  In: rows, the measure to maximise. Out: outcomes in three columns, grouped by row.
 *  Rows without an outcome are left out. */
import { compareUtf8, RollbookError } from "../../base/index.ts";
import {
  areBilled,
  type DecisionRow,
  type LoggedCandidate,
  labelledRows,
  type RewardTerms,
  spentOf,
} from "./decision-row.ts";
import { burdenOf, qualityIn } from "./reward-parts.ts";

/** A decision whose candidates may carry their outcomes. */
export interface OutcomeRow extends DecisionRow {
  readonly candidates: readonly (DecisionRow["candidates"][number] & Pick<LoggedCandidate, "outcome">)[];
  readonly terms?: RewardTerms;
  /** Cost of the decision's call in US dollars. */
  readonly costUsd?: number;
  /** Sum of the prices of the choices from this one to the end of its chain; null: a price is missing.
   *  Absent: no sum. */
  readonly priceToGo?: number | null;
}

/** The measure that a learner maximises: the logged reward, or a part of it. */
type OutcomeMeasure = "reward" | "quality" | "cost";

export interface Outcomes<Row extends OutcomeRow = OutcomeRow> {
  /** Sorted by id, each with at least one outcome. */
  readonly rows: readonly Row[];
  readonly arms: readonly string[];
  /** Outcomes of row r: start[r] … start[r+1]. */
  readonly start: Int32Array;
  readonly arm: Int32Array;
  readonly target: Float64Array;
  /** 1 / the logged probability of each outcome; 1 with full information or without a logged probability. */
  readonly weight: Float64Array;
  readonly full: boolean;
  /** Rows × arms: 1 if the arm was selectable at the row. Undefined if every arm was selectable everywhere. */
  readonly offered?: Uint8Array | undefined;
}

/** True if every selectable candidate of every row has its outcome. */
export function isFullInformation(rows: readonly OutcomeRow[]): boolean {
  return (
    rows.length > 0 &&
    rows.every(({ candidates }) =>
      candidates.every(({ selectable, outcome }) => outcome !== undefined || !selectable),
    )
  );
}

export function outcomesOf<Row extends OutcomeRow>(
  all: readonly Row[],
  measure: OutcomeMeasure = "reward",
): Outcomes<Row> {
  const full = isFullInformation(all);
  const rows = full
    ? [...all].sort((a, b) => compareUtf8(a.id, b.id))
    : (labelledRows(all) as unknown as Row[]);
  const billed =
    !full &&
    areBilled(rows.map(({ terms = {}, candidates }) => ({ terms, candidates }))) &&
    // If no row has a bill, the price of the choice is the cost.
    rows.some((row) => spentToGo(row) !== undefined);
  const known = rows.map((row) =>
    full ? everyOutcome(row, measure) : [chosenOutcome(row, measure, billed)],
  );
  const arms = [...new Set(known.flat().map(({ id }) => id))].sort(compareUtf8);
  const places = new Map(arms.map((id, a) => [id, a]));
  const start = new Int32Array(rows.length + 1);
  known.forEach((each, r) => {
    start[r + 1] = start[r]! + each.length;
  });
  const flat = known.flat();
  return {
    ...{ rows, arms, start, full, offered: offeredIn(rows, places) },
    arm: Int32Array.from(flat, ({ id }) => places.get(id)!),
    target: Float64Array.from(flat, ({ value }) => value),
    weight: Float64Array.from(flat, ({ propensity }) => 1 / (propensity ?? 1)),
  };
}

function offeredIn(rows: readonly OutcomeRow[], places: ReadonlyMap<string, number>): Uint8Array | undefined {
  const offered = new Uint8Array(rows.length * places.size);
  let count = 0;
  rows.forEach(({ candidates }, r) => {
    for (const { id, selectable } of candidates) {
      const place = selectable ? places.get(id) : undefined;
      if (place === undefined) continue;
      offered[r * places.size + place] = 1;
      count++;
    }
  });
  return count === offered.length ? undefined : offered;
}

interface KnownOutcome {
  readonly id: string;
  readonly value: number;
  readonly propensity: number | null;
}

function everyOutcome(row: OutcomeRow, measure: OutcomeMeasure): KnownOutcome[] {
  const priceAt = ({ features }: DecisionRow["candidates"][number]) => features.price ?? features.callPrice;
  return row.candidates.flatMap((one) => {
    const { id, selectable, outcome } = one;
    return selectable && outcome !== undefined
      ? [{ id, value: partOf(row, { ...outcome, measure, price: priceAt(one) }), propensity: null }]
      : [];
  });
}

/** `billed`: the cost is the spending in US dollars. */
function chosenOutcome(row: OutcomeRow, measure: OutcomeMeasure, billed: boolean): KnownOutcome {
  const { id } = row.candidates[row.chosen]!;
  const price = billed ? spentToGo(row) : priceOf(row);
  const value = partOf(row, { reward: row.reward!, terms: row.terms ?? {}, measure, price });
  return { id, value, propensity: row.propensity };
}

/** The price of the choice. If the row has a return, it includes the prices of later choices. */
export function priceOf({ candidates, chosen, priceToGo }: OutcomeRow): number | undefined {
  return priceToGo === undefined ? candidates[chosen]?.features.price : (priceToGo ?? undefined);
}

/** The spending of the choice. If the row has a return, it includes later choices.
 *  A sum that lacks a part is undefined. */
export function spentToGo(row: OutcomeRow): number | undefined {
  return row.priceToGo === undefined ? spentOf(row) : row.costUsd;
}

/** Cost is the reward term `cost`. Without the term it is the price. */
function partOf(
  row: OutcomeRow,
  given: { reward: number; terms: RewardTerms; measure: OutcomeMeasure; price: number | undefined },
): number {
  const { reward, terms, measure, price } = given;
  if (!Number.isFinite(reward))
    throw new RollbookError(
      "bad-training-data",
      { id: row.id, reward: String(reward) },
      `decision ${row.id}: an outcome has the reward ${reward}. Repair the row or leave it out.`,
    );
  const { cost } = terms;
  if (measure === "reward") return reward;
  if (measure === "quality") return qualityIn(reward, terms);
  if (cost !== undefined) return burdenOf(cost);
  if (price !== undefined) return price;
  throw spentToGo(row) === undefined ? noCost(row.id) : mixedCosts(row.id);
}

function noCost(id: string): RollbookError {
  return new RollbookError(
    "no-cost",
    { id },
    `decision ${id} has no cost: neither a reward term called cost, nor features.price of every candidate, nor a recorded cost of its call, nor callPrice of the choice. Of an imported log, map the column that holds it (\`data import --map cost=COLUMN\`). Of calls through a gateway, set price: of every model in its file before you record. Or train without a cost weight or budget.`,
  );
}

function mixedCosts(id: string): RollbookError {
  return new RollbookError(
    "no-cost",
    { id },
    `decision ${id} has a cost in US dollars, recorded by a gateway or declared as callPrice; other decisions have a reward term called cost or features.price. A term states no unit, so the two are not compared. Train from one kind at a time, for example with --until or --since, or without a cost weight or budget.`,
  );
}
