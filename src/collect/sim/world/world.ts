/** A world with a known optimum: proved tasks, declared models, a reward. In: these three parts. Out: the exact
 *  expected reward of every model on every task, and hence of every policy, of the best policy, of the best single
 *  model, and of a uniform choice. Tasks are equally likely. A policy sees only prompt and request, so tasks with the
 *  same prompt are one question to it. */
import { type Digest, digestJson, RollbookError } from "../../../base/index.ts";
import type { DecisionCandidate, DecisionContext } from "../../../policy/index.ts";
import { routingContext } from "../tasks/index.ts";
import { digestModels, type SimModel } from "./models.ts";
import { type OutcomeModel, outcomesOf, type ProvedTask } from "./outcomes.ts";
import { DEFAULT_WEIGHTS, type RewardWeights } from "./reward.ts";

/** A policy: a distribution over the candidates for every question. */
export type PolicyOf = (
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
) => readonly number[];

/** Questions, candidates, and the value of each candidate for each question: enough for the value of any policy. */
export interface KnownWorld {
  /** One router context per question. */
  readonly contexts: readonly DecisionContext[];
  /** Candidates in the form in which the gateway offers them. */
  readonly candidates: readonly DecisionCandidate[];
  /** The exact expected reward. */
  value(question: number, candidate: number): number;
}

export interface SimWorld extends KnownWorld {
  readonly tasks: readonly ProvedTask[];
  readonly models: readonly SimModel[];
  readonly weights: RewardWeights;
  /** Digest of the tasks, their solutions and the proved facts, the models and the weights. It identifies the world. */
  readonly digest: Digest;
  outcomes(task: number, model: number): OutcomeModel;
}

export function makeWorld(options: {
  readonly tasks: readonly ProvedTask[];
  readonly models: readonly SimModel[];
  readonly weights?: RewardWeights;
}): SimWorld {
  const { tasks, models, weights = DEFAULT_WEIGHTS } = options;
  if (tasks.length === 0 || models.length === 0)
    throw new RollbookError("empty-world", {}, "a world needs at least one task and one model.");
  const cache: (OutcomeModel | undefined)[] = new Array(tasks.length * models.length);
  const outcomes = (task: number, model: number): OutcomeModel => {
    const at = task * models.length + model;
    cache[at] ??= outcomesOf(tasks[task]!, models[model]!, weights);
    return cache[at];
  };
  return {
    ...{ tasks, models, weights, outcomes },
    digest: digestJson("rollbook.sim-world.v1", {
      tasks: tasks.map(identityOf),
      models: digestModels(models),
      weights,
    }),
    contexts: tasks.map(({ task }) => routingContext(task.visible)),
    candidates: models.map(candidateOf),
    value: (task, model) => outcomes(task, model).expected.reward,
  };
}

/** Everything that determines outcomes. The engine of the proof is not part of it. */
function identityOf({ task, proof: { start, reference, mutants } }: ProvedTask) {
  return { task: task.digest, solutions: task.solutions, facts: { start, reference, mutants } };
}

/** The candidate of a priced model, with the same features as at the gateway. */
export function candidateOf({ name, price }: Pick<SimModel, "name" | "price">): DecisionCandidate {
  return {
    id: name,
    selectable: true,
    reasons: [],
    features: { promptPrice: price.prompt, completionPrice: price.completion },
  };
}

/** The exact value of a policy: the mean of its expected reward over tasks. */
export function policyValue(world: KnownWorld, policy: PolicyOf): number {
  return meanOver(world, (task) => {
    const probabilities = policy(world.contexts[task]!, world.candidates);
    return probabilities.reduce((sum, p, m) => (p === 0 ? sum : sum + p * world.value(task, m)), 0);
  });
}

/** Expected reward, quality and cost of a rollout of a policy. */
interface ExpectedOutcome {
  readonly reward: number;
  readonly quality: number;
  readonly costUsd: number;
}

/** The exact expectation of a policy: the mean over tasks. */
export function expectedOutcome(world: SimWorld, policy: PolicyOf): ExpectedOutcome {
  const mean = (part: keyof ExpectedOutcome) =>
    meanOver(world, (task) =>
      policy(world.contexts[task]!, world.candidates).reduce(
        (sum, p, model) => (p === 0 ? sum : sum + p * world.outcomes(task, model).expected[part]),
        0,
      ),
    );
  return { reward: mean("reward"), quality: mean("quality"), costUsd: mean("costUsd") };
}

/** The optimal policy: it takes the best model for every prompt. */
export function optimalPolicy(world: SimWorld): PolicyOf {
  const best = bestChoices(world);
  const choices = new Map(world.contexts.map(({ prompt }, task) => [prompt, best[task]!]));
  return ({ prompt }, candidates) => candidates.map((_, model) => (choices.get(prompt) === model ? 1 : 0));
}

export interface KnownValues {
  readonly best: number;
  readonly bestSingle: { readonly model: string; readonly value: number };
  readonly uniform: number;
  /** Value of always choosing one model, by the model's name. */
  readonly single: Readonly<Record<string, number>>;
  /** Number of tasks for which each model is best, by name. */
  readonly bestFor: Readonly<Record<string, number>>;
}

export function knownValues(world: KnownWorld): KnownValues {
  const { candidates } = world;
  const single = candidates.map((_, m) => meanOver(world, (task) => world.value(task, m)));
  const top = argMax(single);
  const choices = bestChoices(world);
  return {
    best: meanOver(world, (task) => world.value(task, choices[task]!)),
    bestSingle: { model: candidates[top]!.id, value: single[top]! },
    uniform: single.reduce((sum, value) => sum + value, 0) / candidates.length,
    single: Object.fromEntries(candidates.map(({ id }, m) => [id, single[m]!])),
    bestFor: Object.fromEntries(
      candidates.map(({ id }, m) => [id, choices.filter((choice) => choice === m).length]),
    ),
  };
}

/** Values of a family for each model and for the best policy: ground truth that a router does not get. */
export interface FamilyValues {
  readonly family: string;
  readonly tasks: number;
  readonly single: Readonly<Record<string, number>>;
  readonly best: number;
  /** Models that are best for some of the family's tasks, most tasks first. */
  readonly bestModels: readonly string[];
}

export function valuesByFamily(world: SimWorld): FamilyValues[] {
  const choices = bestChoices(world);
  const names = world.models.map(({ name }) => name);
  const families = [...new Set(world.tasks.map(({ task }) => task.oracle.family))].sort();
  return families.map((family) => {
    const own = world.tasks.flatMap(({ task }, t) => (task.oracle.family === family ? [t] : []));
    const mean = (value: (task: number) => number) =>
      own.reduce((sum, task) => sum + value(task), 0) / own.length;
    const wins = names.map((_, m) => own.filter((task) => choices[task] === m).length);
    return {
      family,
      tasks: own.length,
      single: Object.fromEntries(names.map((name, m) => [name, mean((task) => world.value(task, m))])),
      best: mean((task) => world.value(task, choices[task]!)),
      bestModels: names
        .map((name, m) => ({ name, wins: wins[m]! }))
        .filter((each) => each.wins > 0)
        .sort((a, b) => b.wins - a.wins)
        .map(({ name }) => name),
    };
  });
}

/** The model that the best policy takes for each task. Chosen by prompt, because a policy sees only the prompt. */
export function bestChoices(world: KnownWorld): readonly number[] {
  const byPrompt = new Map<string, number[]>();
  world.contexts.forEach(({ prompt }, task) => {
    const sums = byPrompt.get(prompt) ?? new Array<number>(world.candidates.length).fill(0);
    byPrompt.set(
      prompt,
      sums.map((sum, m) => sum + world.value(task, m)),
    );
  });
  return world.contexts.map(({ prompt }) => argMax(byPrompt.get(prompt)!));
}

function argMax(values: readonly number[]): number {
  return values.reduce((best, value, i) => (value > values[best]! ? i : best), 0);
}

function meanOver({ contexts }: KnownWorld, value: (question: number) => number): number {
  return contexts.reduce((sum, _, question) => sum + value(question), 0) / contexts.length;
}
