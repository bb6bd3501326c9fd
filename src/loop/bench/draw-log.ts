/** Draws a training log of a simulated world: decisions of a behaviour policy with their probabilities and rewards.
 *  In: a world, a behaviour, a number, a generator. Out: rows. Tasks are drawn uniformly with replacement. Every reward
 *  equals that of an executed rollout of the same task, model and seed, so no program is run. */
import type { Rng } from "../../base/index.ts";
import { policyOfRouter, ROUTER_FAMILY, type SimWorld } from "../../collect/sim/index.ts";
import type { LoggedRow } from "../../learn/index.ts";
import { draw, type Router } from "../../policy/index.ts";

export function drawLog(
  world: SimWorld,
  { behaviour, decisions, rng }: { behaviour: Router; decisions: number; rng: Rng },
): LoggedRow[] {
  const policy = policyOfRouter(behaviour);
  const asked = world.contexts.map((context) => policy(context, world.candidates));
  return Array.from({ length: decisions }, (_, index): LoggedRow => {
    const task = rng.below(world.tasks.length);
    const probabilities = asked[task]!;
    const chosen = draw(probabilities, rng);
    const { reward, quality, costUsd, latencyMs } = world.outcomes(task, chosen).outcome(rng.u32());
    const id = `d-${String(index).padStart(8, "0")}`;
    return {
      ...{ id, session: id, chain: id, task: world.tasks[task]!.task.digest, family: ROUTER_FAMILY },
      context: world.contexts[task]!,
      candidates: world.candidates.map((each, c) => ({ ...each, probability: probabilities[c]! })),
      ...{ chosen, propensity: probabilities[chosen]!, reward, atMs: index },
      terms: {
        quality: { value: quality, weight: 1 },
        cost_usd: { value: costUsd, weight: 0 },
        latency_ms: { value: latencyMs, weight: 0 },
      },
      ...{ source: "synthetic", terminal: true, rewardFrom: "recorded" },
    };
  });
}
