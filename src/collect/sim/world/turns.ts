/** Routing at every turn of a rollout: its decision process, and the exact optimum by dynamic programming.
 *  In: a world. Out: for each task the states of a rollout and the possible results of each model in them; the value of
 *  the best policy, and of any given policy. Runs no program: the proofs hold the result of each solution.
 *
 *  A model continues from the state that the last model left: it looks, tries, tries again after failed visible tests,
 *  or submits. The reward comes only at the end. A router sees the prompt and the number of messages, not the tests. */
import type { DecisionContext, DecisionEnvironment } from "../../../policy/index.ts";
import { routingContext } from "../tasks/index.ts";
import { type CandidateFacts, call, ended, planOf, type RunningBill } from "./outcomes.ts";
import { attemptSteps, drawOf, lookSteps, possibleAttempts } from "./simulated-model.ts";
import type { PolicyOf, SimWorld } from "./world.ts";

interface Turn {
  /** Number of calls so far. */
  readonly turn: number;
  readonly attempts: number;
  /** The candidate that the last attempt wrote. Undefined before the first attempt. */
  readonly taken: CandidateFacts | undefined;
  readonly bill: RunningBill;
  /** Number of messages in the conversation: the part of the state that a router sees. */
  readonly messages: number;
}

type TurnBranch =
  | { readonly kind: "turn"; readonly probability: number; readonly next: Turn }
  | { readonly kind: "end"; readonly probability: number; readonly reward: number };

/** One task as a decision process. */
interface TaskTurns {
  readonly begin: Turn;
  /** Possible results of asking `model` in a state. Their probabilities add up to 1. */
  branches(at: Turn, model: number): readonly TurnBranch[];
  /** The result of asking `model` in the rollout of this seed. */
  follow(at: Turn, model: number, seed: number): TurnBranch;
  context(at: Turn): DecisionContext;
}

export function turnsOf(world: SimWorld, task: number): TaskTurns {
  const proved = world.tasks[task]!;
  const plans = world.models.map((model) => planOf(proved, model));
  const looks = lookSteps(proved.task).length;
  const written = possibleAttempts(proved.task).map((files) => attemptSteps(files).length);
  const context = routingContext(proved.task.visible);
  const begin: Turn = {
    ...{ turn: 0, attempts: 0, taken: undefined, messages: context.fields.messages as number },
    bill: plans[0]!.opened,
  };
  const turns: TaskTurns = {
    begin,
    context: ({ messages }) => ({ ...context, fields: { ...context.fields, messages } }),
    branches(at, m) {
      const [model, plan] = [world.models[m]!, plans[m]!];
      const { taken, attempts } = at;
      if (taken !== undefined && (taken.passesVisible || attempts >= model.patience)) {
        const { reward } = ended(plan, world.weights, { bill: at.bill, taken });
        return [{ kind: "end", probability: 1, reward }];
      }
      if (at.turn === 0 && plan.firstTurn === 1) {
        const next = { ...at, turn: 1, bill: plan.begin, messages: at.messages + 1 + looks };
        return [{ kind: "turn", probability: 1, next }];
      }
      const right = attempts === 0 ? plan.skill : model.repair;
      return plan.candidates.flatMap((each, i): TurnBranch[] => {
        const probability = i === 0 ? right : (1 - right) / (plan.candidates.length - 1);
        if (probability === 0) return [];
        const next = {
          ...{ turn: at.turn + 1, attempts: attempts + 1, taken: each },
          bill: call(at.bill, model, each.completionTokens, each.observedTokens),
          messages: at.messages + 1 + written[i]!,
        };
        return [{ kind: "turn", probability, next }];
      });
    },
    follow(at, m, seed) {
      const model = world.models[m]!.name;
      const draw = drawOf({ model, task: proved.task.digest, seed, turn: at.turn });
      return branchAt(turns.branches(at, m), draw);
    },
  };
  return turns;
}

interface TurnValues {
  /** Value of the best policy that knows the task and the whole state, including test results. */
  readonly best: number;
  /** Value of the best policy that knows the task, but only the part of the state that a router sees. */
  readonly bestSeen: number;
}

/** The exact optima, as means over tasks. */
export function bestTurnValues(world: SimWorld): TurnValues {
  const all = world.tasks.map((_, task) => turnsOf(world, task));
  const mean = (value: (turns: TaskTurns) => number) =>
    all.reduce((sum, turns) => sum + value(turns), 0) / all.length;
  const models = world.models.length;
  return {
    best: mean((turns) => bestFrom(turns, turns.begin, models)),
    bestSeen: mean((turns) => bestBlind(turns, [{ weight: 1, at: turns.begin }], models)),
  };
}

/** V(s) = max over models of Σ p · (reward or V(s′)). */
function bestFrom(turns: TaskTurns, at: Turn, models: number): number {
  let best = Number.NEGATIVE_INFINITY;
  for (let m = 0; m < models; m++) {
    let value = 0;
    for (const branch of turns.branches(at, m))
      value +=
        branch.probability * (branch.kind === "end" ? branch.reward : bestFrom(turns, branch.next, models));
    best = Math.max(best, value);
  }
  return best;
}

/** The same optimum over beliefs: states that a router cannot distinguish get the same model. */
function bestBlind(
  turns: TaskTurns,
  belief: readonly { weight: number; at: Turn }[],
  models: number,
): number {
  let best = Number.NEGATIVE_INFINITY;
  for (let m = 0; m < models; m++) {
    let value = 0;
    const alike = new Map<number, { weight: number; at: Turn }[]>();
    for (const { weight, at } of belief)
      for (const branch of turns.branches(at, m)) {
        const share = weight * branch.probability;
        if (branch.kind === "end") {
          value += share * branch.reward;
          continue;
        }
        const { messages } = branch.next;
        alike.set(messages, [...(alike.get(messages) ?? []), { weight: share, at: branch.next }]);
      }
    for (const next of alike.values()) value += bestBlind(turns, next, models);
    best = Math.max(best, value);
  }
  return best;
}

/** The exact value of a policy that decides at every turn. */
export function turnPolicyValue(world: SimWorld, policy: PolicyOf): number {
  const values = world.tasks.map((_, task) => {
    const turns = turnsOf(world, task);
    const asked = new Map<number, readonly number[]>();
    const valueFrom = (at: Turn): number => {
      let probabilities = asked.get(at.messages);
      if (probabilities === undefined) {
        probabilities = policy(turns.context(at), world.candidates);
        asked.set(at.messages, probabilities);
      }
      let value = 0;
      probabilities.forEach((p, m) => {
        if (p === 0) return;
        for (const branch of turns.branches(at, m))
          value += p * branch.probability * (branch.kind === "end" ? branch.reward : valueFrom(branch.next));
      });
      return value;
    };
    return valueFrom(turns.begin);
  });
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}

/** The same process as an environment: a random task, a model per turn, the reward at the end. The outcome equals that
 *  of a sandbox rollout with the same seed and choices. */
export function turnEnvironment(world: SimWorld): DecisionEnvironment {
  const known = new Map<number, TaskTurns>();
  let turns = turnsOf(world, 0);
  let at = turns.begin;
  let seed = 0;
  return {
    candidates: world.candidates,
    reset(rng) {
      const task = rng.below(world.tasks.length);
      turns = known.get(task) ?? turnsOf(world, task);
      known.set(task, turns);
      at = turns.begin;
      seed = rng.u32();
      return turns.context(at);
    },
    step(model) {
      const branch = turns.follow(at, model, seed);
      if (branch.kind === "end")
        return { reward: branch.reward, context: turns.context(at), end: "terminal" };
      at = branch.next;
      return { reward: 0, context: turns.context(at), end: "none" };
    },
  };
}

/** Branches are in the order in which a simulated model's draw selects them. */
function branchAt(branches: readonly TurnBranch[], draw: number): TurnBranch {
  let sum = 0;
  for (const branch of branches) {
    sum += branch.probability;
    if (draw < sum) return branch;
  }
  return branches.at(-1)!;
}
