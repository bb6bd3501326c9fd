/** Routing rows as the judge reads them. Unlabelled rows are left out and counted, never taken as 0. */
import { type JudgedRow, type Measures, measuresOf } from "../judge/evaluate/judged-row.ts";
import type { SplitUnit } from "../learn/index.ts";
import { type RoutingRow, toDecisionRow } from "./routing-jsonl.ts";

export interface JudgedRows {
  readonly rows: readonly JudgedRow[];
  readonly unlabelled: number;
}

export function toJudgedRows(rows: readonly RoutingRow[], unit: SplitUnit): JudgedRows {
  const judged = rows.flatMap((row) => (row.reward === null ? [] : [toJudged(row, row.reward, unit)]));
  return { rows: judged, unlabelled: rows.length - judged.length };
}

export function unitOf(row: RoutingRow, unit: SplitUnit): string {
  switch (unit) {
    case "task":
      return row.task_id;
    case "session":
      return row.session_id;
    case "decision":
      return row.decision_id;
    default:
      return unit satisfies never;
  }
}

function toJudged(row: RoutingRow, reward: number, unit: SplitUnit): JudgedRow {
  const { candidates, terms } = row.state;
  const decision = toDecisionRow(row);
  const prices = candidates.map((one) => one.features.price);
  const priced = terms.cost === undefined && prices.every((price) => price !== undefined);
  const logged = candidates.every((one) => one.probability !== null || !one.selectable);
  const known = candidates.flatMap((one, c): Measures[] =>
    one.outcome === undefined
      ? []
      : [
          measuresOf(one.outcome.reward, {
            terms: one.outcome.terms,
            price: priced ? prices[c] : undefined,
          }),
        ],
  );
  return {
    ...decision,
    reward,
    unit: unitOf(row, unit),
    measures: measuresOf(reward, { terms, price: priced ? prices[decision.chosen] : undefined }),
    ...(logged ? { behaviour: candidates.map((one) => one.probability ?? 0) } : {}),
    ...(priced ? { prices: prices as number[] } : {}),
    ...(known.length === candidates.length ? { known } : {}),
  };
}
