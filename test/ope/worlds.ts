/** Small worlds whose policy values are known exactly, for testing estimators against the truth. */

import type { Rng } from "../../src/base/rng.ts";
import type { LoggedDecisions } from "../../src/judge/ope/index.ts";
import { drawIndex } from "../support/draw-index.ts";

/** One-step world: 4 contexts, 3 actions, Bernoulli rewards. */
const MEAN = [
  [0.9, 0.5, 0.1],
  [0.2, 0.7, 0.4],
  [0.3, 0.3, 0.8],
  [0.6, 0.1, 0.5],
];
const LOGGING = [
  [0.2, 0.3, 0.5],
  [0.6, 0.2, 0.2],
  [0.3, 0.4, 0.3],
  [0.2, 0.6, 0.2],
];
const TARGET = [
  [0.7, 0.2, 0.1],
  [0.1, 0.8, 0.1],
  [0.1, 0.2, 0.7],
  [0.5, 0.1, 0.4],
];

export const BANDIT_TRUTH = meanOver(TARGET);
export const BANDIT_BEHAVIOUR_TRUTH = meanOver(LOGGING);

function meanOver(policy: number[][]): number {
  return policy
    .flatMap((row, x) => row.map((p, a) => (p * MEAN[x]![a]!) / MEAN.length))
    .reduce((s, v) => s + v);
}

/** Contexts are one-hot, so a linear model per action is exact. */
export function banditLog(rows: number, rng: Rng): LoggedDecisions {
  const reward = new Float64Array(rows);
  const behaviour = new Float64Array(rows);
  const target = new Float64Array(rows);
  const chosen = new Int32Array(rows);
  const targetAll = new Float64Array(rows * 3);
  const behaviourAll = new Float64Array(rows * 3);
  const values = new Float64Array(rows * 4);
  for (let i = 0; i < rows; i++) {
    const x = rng.below(4);
    const a = drawIndex(Float64Array.from(LOGGING[x]!), rng);
    reward[i] = rng.float() < MEAN[x]![a]! ? 1 : 0;
    behaviour[i] = LOGGING[x]![a]!;
    target[i] = TARGET[x]![a]!;
    chosen[i] = a;
    targetAll.set(TARGET[x]!, i * 3);
    behaviourAll.set(LOGGING[x]!, i * 3);
    values[i * 4 + x] = 1;
  }
  return {
    reward,
    behaviour,
    target,
    candidates: { count: 3, chosen, target: targetAll, behaviour: behaviourAll },
    context: { width: 4, values },
  };
}

/** Two contexts and two actions. Action 0 is right in one context only, and the target always chooses it. The log explores
 *  action 1 in a share of rows. */
export function exploringWorld(share: number) {
  const mean = [
    [0.9, 0.9],
    [0.05, 0.9],
  ];
  const logOf = (rows: number, rng: Rng): LoggedDecisions => {
    const chosen = new Int32Array(rows);
    const values = new Float64Array(rows * 2);
    const reward = Float64Array.from({ length: rows }, (_, i) => {
      const x = rng.below(2);
      chosen[i] = rng.float() < share ? 1 : 0;
      values.set([x, rng.float()], i * 2);
      return rng.float() < mean[x]![chosen[i]!]! ? 1 : 0;
    });
    const pairs = (first: number, second: number) =>
      Float64Array.from({ length: rows * 2 }, (_, i) => (i % 2 === 0 ? first : second));
    return {
      reward,
      behaviour: Float64Array.from(chosen, (a) => (a === 1 ? share : 1 - share)),
      target: Float64Array.from(chosen, (a) => 1 - a),
      candidates: { count: 2, chosen, target: pairs(1, 0), behaviour: pairs(1 - share, share) },
      context: { width: 2, values },
    };
  };
  return { truth: (mean[0]![0]! + mean[1]![0]!) / 2, logOf };
}

/** Chain: states 0 and 1, actions 0 and 1, `HORIZON` steps, starting in state 0. Action 1 moves to the other state with
 *  probability 0.8, action 0 with 0.1. The reward is the state after the move, less 0.1 for action 1. */
export const HORIZON = 4;
export const DISCOUNT = 0.9;
const MOVE = [0.1, 0.8];
const CHAIN_LOGGING = [0.5, 0.4];
const CHAIN_TARGET = [0.8, 0.2];

/** The exact value of choosing action 1 with probability p[state], by dynamic programming. */
export function chainValue(p: readonly number[]): number {
  let value = [0, 0];
  for (let step = 0; step < HORIZON; step++) {
    value = [0, 1].map((s) =>
      [0, 1].reduce((total, a) => {
        const chance = a === 1 ? p[s]! : 1 - p[s]!;
        const moved = MOVE[a]!;
        const next = [s, 1 - s].map((to) => to + DISCOUNT * value[to]!);
        return total + chance * ((1 - moved) * next[0]! + moved * next[1]! - 0.1 * a);
      }, 0),
    );
  }
  return value[0]!;
}

export const CHAIN_TRUTH = chainValue(CHAIN_TARGET);

/** Rows are shuffled, because order in the file carries no meaning. */
export function chainLog(episodes: number, rng: Rng): LoggedDecisions {
  const rows = episodes * HORIZON;
  const at = rng.shuffle(Array.from({ length: rows }, (_, i) => i));
  const columns = {
    reward: new Float64Array(rows),
    behaviour: new Float64Array(rows),
    target: new Float64Array(rows),
    episode: new Int32Array(rows),
  };
  const step = new Int32Array(rows);
  const chosen = new Int32Array(rows);
  const targetAll = new Float64Array(rows * 2);
  const values = new Float64Array(rows * 3);
  for (let e = 0; e < episodes; e++) {
    let state = 0;
    for (let t = 0; t < HORIZON; t++) {
      const row = at[e * HORIZON + t]!;
      const action = rng.float() < CHAIN_LOGGING[state]! ? 1 : 0;
      columns.behaviour[row] = action === 1 ? CHAIN_LOGGING[state]! : 1 - CHAIN_LOGGING[state]!;
      columns.target[row] = action === 1 ? CHAIN_TARGET[state]! : 1 - CHAIN_TARGET[state]!;
      targetAll.set([1 - CHAIN_TARGET[state]!, CHAIN_TARGET[state]!], row * 2);
      values.set([state, t, state * t], row * 3);
      columns.episode[row] = e + 100;
      step[row] = t;
      chosen[row] = action;
      if (rng.float() < MOVE[action]!) state = 1 - state;
      columns.reward[row] = state - 0.1 * action;
    }
  }
  return {
    ...columns,
    candidates: { count: 2, chosen, target: targetAll },
    context: { width: 3, values },
    chain: { step, discount: DISCOUNT },
  };
}

/** Every path of the chain, with its probability under the behaviour policy: expectations without sampling error. */
export function chainPaths(): {
  probability: number;
  steps: { state: number; action: number; reward: number }[];
}[] {
  let paths: ReturnType<typeof chainPaths> = [{ probability: 1, steps: [] }];
  const states = new Map<object, number>([[paths[0]!, 0]]);
  for (let t = 0; t < HORIZON; t++) {
    paths = paths.flatMap((path) => {
      const state = states.get(path)!;
      return [0, 1].flatMap((action) =>
        [0, 1].map((moved) => {
          const to = moved === 1 ? 1 - state : state;
          const chance = action === 1 ? CHAIN_LOGGING[state]! : 1 - CHAIN_LOGGING[state]!;
          const next = {
            probability: path.probability * chance * (moved === 1 ? MOVE[action]! : 1 - MOVE[action]!),
            steps: [...path.steps, { state, action, reward: to - 0.1 * action }],
          };
          states.set(next, to);
          return next;
        }),
      );
    });
  }
  return paths;
}

export function chainProbabilities(state: number, action: number): { behaviour: number; target: number } {
  const pick = (p: number) => (action === 1 ? p : 1 - p);
  return { behaviour: pick(CHAIN_LOGGING[state]!), target: pick(CHAIN_TARGET[state]!) };
}
