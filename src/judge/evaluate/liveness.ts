/** Measures how often the policy acts. A policy whose confidence never reaches the floor changes nothing, even if it
 *  was trained well. In: rows and a router. Out: the share of rows that the policy decides, its confidence, and the
 *  share of rows where it departs from the table. */
import { distribution } from "../../policy/index.ts";
import { type RouterSetup, routerOf } from "./contenders.ts";
import type { JudgedRow } from "./judged-row.ts";

export interface Liveness {
  readonly rows: number;
  /** Null: no floor keeps the promise, so the static table always decides. */
  readonly floor: number | null;
  /** Share of rows that the policy decides: confidence at or above the floor, and more than one candidate. */
  readonly live: number;
  /** Share of rows where the policy decides and prefers another candidate than the table. */
  readonly departs: number;
  readonly highestConfidence: number;
  readonly medianConfidence: number;
  /** Share of rows with only one selectable candidate, so there is no decision. */
  readonly forced: number;
  readonly warning?: string;
}

export function livenessOf(rows: readonly JudgedRow[], setup: RouterSetup): Liveness {
  const { policy, table, floor } = setup;
  const [router, fallback] = [routerOf({ ...setup, exploration: 0 }), { table, floor: 0, exploration: 0 }];
  let [live, departs, forced] = [0, 0, 0];
  const confidence = Float64Array.from(rows, (row) => {
    const decision = distribution(row.context, row.candidates, router);
    if (decision.reason === "only-candidate") forced++;
    if (decision.reason === "policy") {
      live++;
      const usual = distribution(row.context, row.candidates, fallback);
      if (top(decision.probabilities) !== top(usual.probabilities)) departs++;
    }
    return decision.confidence ?? policy?.answer(row.context, row.candidates).confidence ?? 0;
  }).sort();
  const highest = confidence.at(-1) ?? 0;
  const warning = warningOf({ live, departs, highest, floor });
  return {
    rows: rows.length,
    floor,
    live: live / rows.length,
    departs: departs / rows.length,
    highestConfidence: highest,
    medianConfidence: confidence[confidence.length >> 1] ?? 0,
    forced: forced / rows.length,
    ...(warning === undefined ? {} : { warning }),
  };
}

function warningOf(facts: {
  live: number;
  departs: number;
  highest: number;
  floor: number | null;
}): string | undefined {
  const { live, departs, highest, floor } = facts;
  if (floor === null)
    return "the policy never decides: no confidence floor keeps the promised risk, so the static table decides every row";
  if (highest < floor)
    return `the policy never decides: its highest confidence is ${highest.toPrecision(3)}, the floor is ${floor}. Lower the floor, or choose one with train --floor-risk`;
  if (live === 0) return "the policy never decides: no row leaves it a choice";
  if (departs === 0)
    return "the policy changes nothing: wherever it decides, it prefers what the static table does. Without --table, the table is fitted from the training rows of the policy, so both may have learned the same";
  return undefined;
}

function top(probabilities: readonly number[]): number {
  return probabilities.indexOf(Math.max(...probabilities));
}
