/** A routing world in which every value is known: sums are safe with "cheap", proofs need "strong", and "strong" costs
 *  more. In: number of rows, a seed. Out: a routing log with its propensities, cost terms and, on request, every
 *  outcome. */
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { modelsOf, type RoutingRow, toLoggedRow } from "../../src/convert/routing-jsonl.ts";
import type { LoggedRow } from "../../src/learn/index.ts";

export const CANDIDATES = ["cheap", "strong"] as const;
export type Name = (typeof CANDIDATES)[number];
export const COST: Readonly<Record<Name, number>> = { cheap: 0.1, strong: 1 };
export const COST_WEIGHT = -0.3;
/** Mean quality of each choice. */
export const qualityOf = (hard: boolean, name: Name): number =>
  name === "strong" ? (hard ? 0.8 : 0.9) : hard ? 0.2 : 0.85;
/** P(strong) of the behaviour policy. */
export const logged = (hard: boolean): number => (hard ? 0.6 : 0.4);

/** Exact values of the policy that chooses "strong" with this probability; half of the rows are hard. */
export function truth(strong: (hard: boolean) => number): { quality: number; cost: number; reward: number } {
  const mean = (of: (hard: boolean, name: Name) => number) =>
    [true, false].reduce(
      (sum, hard) => sum + (strong(hard) * of(hard, "strong") + (1 - strong(hard)) * of(hard, "cheap")) / 2,
      0,
    );
  const [quality, cost] = [mean(qualityOf), mean((_, name) => COST[name])];
  return { quality, cost, reward: quality + COST_WEIGHT * cost };
}

export function routingWorld(
  count: number,
  seed: number,
  { full = false, perTask = 1 }: { full?: boolean; perTask?: number } = {},
): RoutingRow[] {
  const rng = rngFrom(seed);
  return Array.from({ length: count }, (_, i) => drawRow(i, rng, { full, perTask }));
}

/** The same world as a gateway logs it: the cost is the bill of the call, not a term of the reward. */
export function billed(count: number, seed: number): LoggedRow[] {
  return routingWorld(count, seed).map((line) => {
    const { cost, ...terms } = line.state.terms;
    return { ...toLoggedRow(line), terms, reward: terms.verification!.value, costUsd: cost!.value };
  });
}

function drawRow(i: number, rng: Rng, { full, perTask }: { full: boolean; perTask: number }): RoutingRow {
  const hard = rng.float() < 0.5;
  const name: Name = rng.float() < logged(hard) ? "strong" : "cheap";
  const outcomeOf = (of: Name) => {
    const right = rng.float() < qualityOf(hard, of) ? 1 : 0;
    return {
      reward: right + COST_WEIGHT * COST[of],
      terms: { verification: { value: right, weight: 1 }, cost: { value: COST[of], weight: COST_WEIGHT } },
    };
  };
  const outcomes = { cheap: outcomeOf("cheap"), strong: outcomeOf("strong") };
  const probability = (of: Name) => (of === "strong" ? logged(hard) : 1 - logged(hard));
  return {
    schema_version: 1,
    decision_id: `d-${i}`,
    session_id: `s-${i}`,
    task_id: `t-${Math.floor(i / perTask)}`,
    agent_role: "router",
    timestamp: new Date(1_700_000_000_000 + i * 1000).toISOString(),
    task_complexity_score: null,
    primary_failure_count: null,
    ...modelsOf(CANDIDATES, name),
    propensity: probability(name),
    reward: outcomes[name].reward,
    terminal: true,
    reward_version: "test",
    data_source: "synthetic",
    state: {
      prompt: hard ? `Prove theorem ${i} about the group` : `Add ${i} and ${i + 1}`,
      fields: { words: hard ? 6 : 4 },
      candidates: CANDIDATES.map((id) => ({
        id,
        selectable: true,
        reasons: [],
        probability: probability(id),
        features: {},
        ...(full ? { outcome: outcomes[id] } : {}),
      })),
      terms: outcomes[name].terms,
    },
  };
}
