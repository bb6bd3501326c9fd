/** Logs for judging estimators: decisions of a behaviour policy in a world whose values are known, by the hundred thousand.
 *  In: a world, a behaviour policy, a number of decisions, a seed. Out: columns. Tasks are drawn evenly with replacement,
 *  so rows are independent and the world's exact values are what an estimate has to cover. Every reward is the one that
 *  an executed rollout of that task, model and seed would have. Writes nothing. */
import type { Rng } from "../../src/base/index.ts";
import { type PolicyOf, policyValue, type SimWorld } from "../../src/collect/sim/world/world.ts";
import { draw } from "../../src/policy/index.ts";

export interface DecisionLog {
  readonly world: SimWorld;
  /** Row → task; its context is `world.contexts[task]`. */
  readonly task: Int32Array;
  /** Row → candidate; they are `world.candidates` in every row. */
  readonly chosen: Int32Array;
  /** The probability with which it was chosen. */
  readonly propensity: Float64Array;
  /** All of them, rows × candidates. */
  readonly behaviour: Float64Array;
  readonly reward: Float64Array;
  /** The seed of each row's rollout. */
  readonly seed: Float64Array;
}

export interface TargetColumns {
  /** The target's probability of what was chosen. */
  readonly target: Float64Array;
  /** All of them, rows × candidates. */
  readonly all: Float64Array;
  /** What an estimate has to cover: exact. */
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

/** What a target policy makes of the log, and its exact value. */
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

/** A policy is pure: it is asked once a task. */
function distributions(world: SimWorld, policy: PolicyOf): (task: number) => readonly number[] {
  const known: (readonly number[] | undefined)[] = [];
  return (task) => {
    known[task] ??= policy(world.contexts[task]!, world.candidates);
    return known[task];
  };
}
