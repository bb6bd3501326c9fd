/** UCB1: counts and mean rewards per candidate; the context plays no part. Rewards are meant to lie in 0 … 1.
 *  In: decisions with outcomes. Out: a "ucb1" model. State is two sums, so the order of rows leaves no trace but rounding,
 *  and rows are taken by id to leave none at all. */
import { DEFAULT_FEATURES } from "../../policy/feature-spec.ts";
import type { PolicyModel } from "../../policy/index.ts";
import { armsOf, type DecisionData, type DecisionRow, labelledRows } from "../decision-row.ts";

export interface UcbOptions {
  /** Factor of the confidence width; 1 is Auer's. */
  readonly exploration?: number;
}

export function trainUcb1(data: DecisionData, { exploration = 1 }: UcbOptions = {}): PolicyModel {
  const arms = armsOf(data.rows);
  return {
    kind: "ucb1",
    spec: { ...DEFAULT_FEATURES, wordBuckets: 0 },
    arms,
    config: { algorithm: "ucb1", data: data.digest, exploration },
    settings: { exploration },
    tensors: tallyTensors(arms, labelledRows(data.rows)),
  };
}

/** How often each arm was chosen and what it brought in all. */
export function tallyTensors(
  arms: readonly string[],
  rows: readonly (DecisionRow & { reward: number })[],
): PolicyModel["tensors"] {
  const places = new Map(arms.map((id, i) => [id, i]));
  const counts = new Float64Array(arms.length);
  const sums = new Float64Array(arms.length);
  for (const { candidates, chosen, reward } of rows) {
    const arm = places.get(candidates[chosen]!.id)!;
    counts[arm] = counts[arm]! + 1;
    sums[arm] = sums[arm]! + reward;
  }
  return { counts: { shape: [arms.length], data: counts }, sums: { shape: [arms.length], data: sums } };
}
