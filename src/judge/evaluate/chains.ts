/** Decisions by rollout. In: judged rows.
 *  Out: the rows of each chain in the order of their steps; a row with its return. Pure. */
import { compareNatural } from "../../learn/index.ts";
import type { JudgedRow } from "./judged-row.ts";

/** The indexes of the rows of each chain. Chains are ordered by their first row. */
export function chainPlaces(rows: readonly JudgedRow[]): number[][] {
  const chains = new Map<string, number[]>();
  rows.forEach(({ id, chain = id }, i) => {
    const known = chains.get(chain);
    if (known === undefined) chains.set(chain, [i]);
    else known.push(i);
  });
  return [...chains.values()].map((places) =>
    places.sort((a, b) => compareNatural(rows[a]!.id, rows[b]!.id)),
  );
}

/** One row per chain: its first row, with the return as its reward. */
export function rowsOfReturns(rows: readonly JudgedRow[], discount: number): JudgedRow[] {
  return chainPlaces(rows).map((places) => ({
    ...rows[places[0]!]!,
    reward: places.reduceRight((later, place) => rows[place]!.reward + discount * later, 0),
  }));
}
