/** A small world of routing decisions with a known best policy: prompts about sums are safe with "small", proofs need
 *  "large", and "large" costs more. The behaviour policy is known exactly. In: a seed. Out: decisions with outcomes. */
import { digestJson } from "../../src/base/digest.ts";
import { rngFrom } from "../../src/base/rng.ts";
import type { DecisionData, DecisionRow } from "../../src/learn/rows/decision-row.ts";
import type { DecisionCandidate } from "../../src/policy/decision.ts";

export const SMALL_PROOF = 0.2;
export const LARGE = 0.7;
export const SMALL_SUM = 0.9;

/** P(large | prompt) of the behaviour policy. */
export const behaviour = (hard: boolean): number => (hard ? 0.8 : 0.3);

export const candidate = (id: string, selectable = true, price = 1): DecisionCandidate => ({
  id,
  selectable,
  reasons: selectable ? [] : ["over-budget"],
  features: { price },
});

export const promptOf = (hard: boolean, n: number): string =>
  hard ? `Prove theorem ${n} about the group` : `Add ${n} and ${n + 1}`;

/** Mean reward of each choice. */
export const meanReward = (hard: boolean, id: string): number =>
  id === "large" ? LARGE : hard ? SMALL_PROOF : SMALL_SUM;

export function decisionWorld(count: number, seed: number): DecisionData {
  const rng = rngFrom(seed);
  const rows: DecisionRow[] = Array.from({ length: count }, (_, i) => {
    const hard = rng.float() < 0.5;
    const large = rng.float() < behaviour(hard);
    const id = large ? "large" : "small";
    return {
      id: `d-${i}`,
      context: { prompt: promptOf(hard, i), fields: { hard } },
      candidates: [candidate("large", true, 10), candidate("small")],
      chosen: large ? 0 : 1,
      propensity: large ? behaviour(hard) : 1 - behaviour(hard),
      reward: rng.float() < meanReward(hard, id) ? 1 : 0,
    };
  });
  return { rows, digest: digestJson("test.world", [count, seed]) };
}
