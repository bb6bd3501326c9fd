/** Logs for judging estimators: hundreds of thousands of decisions of a behaviour policy in a world with known values.
 *  In: a world, a behaviour policy, a number of decisions, a seed. Out: columns. Tasks are drawn uniformly with
 *  replacement, so rows are independent and an estimate has to cover the world's exact values. Every reward equals the
 *  reward of an executed rollout of that task, model and seed. Writes nothing. */
import type { Rng } from "../../src/base/index.ts";
import { type PolicyOf, policyValue, type SimWorld } from "../../src/collect/sim/world/world.ts";
import { draw } from "../../src/policy/index.ts";

export interface DecisionLog {
  readonly world: SimWorld;
  /** Task of each row; its context is `world.contexts[task]`. */
  readonly task: Int32Array;
  /** Chosen candidate of each row; the candidates are `world.candidates` in every row. */
  readonly chosen: Int32Array;
  /** The probability of the chosen candidate. */
  readonly propensity: Float64Array;
  /** The probabilities of all candidates, rows × candidates. */
  readonly behaviour: Float64Array;
  readonly reward: Float64Array;
  /** The seed of each row's rollout. */
  readonly seed: Float64Array;
}

export interface TargetColumns {
  /** The target's probability of the chosen candidate. */
  readonly target: Float64Array;
  /** The target's probabilities of all candidates, rows × candidates. */
  readonly all: Float64Array;
  /** The exact value of the target, which an estimate has to cover. */
  readonly value: number;
}

export function makeDecisionLog(
  world: SimWorld,
  { behaviour, decisions, rng }: { behaviour: PolicyOf; decisions: number; rng: Rng },
): DecisionLog {
  const count = world.candidates.length;
  const asked = distributions(world, behaviour);
  const log = {
    world,
    task: new Int32Array(decisions),
    chosen: new Int32Array(decisions),
    propensity: new Float64Array(decisions),
    behaviour: new Float64Array(decisions * count),
    reward: new Float64Array(decisions),
    seed: new Float64Array(decisions),
  };
  for (let row = 0; row < decisions; row++) {
    const task = rng.below(world.tasks.length);
    const probabilities = asked(task);
    const chosen = draw(probabilities, rng);
    const seed = rng.u32();
    log.task[row] = task;
    log.chosen[row] = chosen;
    log.propensity[row] = probabilities[chosen]!;
    log.behaviour.set(probabilities, row * count);
    log.seed[row] = seed;
    log.reward[row] = world.outcomes(task, chosen).outcome(seed).reward;
  }
  return log;
}

/** The target policy's probabilities on the log, and its exact value. */
export function targetColumns({ world, task, chosen }: DecisionLog, policy: PolicyOf): TargetColumns {
  const count = world.candidates.length;
  const asked = distributions(world, policy);
  const target = new Float64Array(task.length);
  const all = new Float64Array(task.length * count);
  for (let row = 0; row < task.length; row++) {
    const probabilities = asked(task[row]!);
    all.set(probabilities, row * count);
    target[row] = probabilities[chosen[row]!]!;
  }
  return { target, all, value: policyValue(world, policy) };
}

/** A policy is pure, so it is asked once per task. */
function distributions(world: SimWorld, policy: PolicyOf): (task: number) => readonly number[] {
  const known: (readonly number[] | undefined)[] = [];
  return (task) => {
    known[task] ??= policy(world.contexts[task]!, world.candidates);
    return known[task];
  };
}
