/** A policy learned online from another policy's log and judged as it learns (progressive validation): each decision is
 *  first predicted, then scored, then learned from, in one pass.
 *  In: decisions with propensities, in order. Out: for each, the policy's choice and its reward by IPS, DM and DR.
 *  The policy predicts the reward of every action and takes the best. `kind` selects the regression target: r/p of the
 *  logged action and 0 elsewhere ("ips"), the reward model itself ("dm"), or q̂ + 1[a](r − q̂)/p ("dr").
 *  Vowpal Wabbit's `--cb K --cb_type dr` prints the mean of the DR terms, with costs for rewards. For `ips` and `dm` it
 *  prints the mean of the IPS terms. Every term uses models that have not seen its decision. So the means are unbiased
 *  for the reward of the sequence of policies, not of the last policy. */
import { RollbookError } from "../../base/index.ts";
import type { SparseVector } from "../../policy/index.ts";
import { OnlineRegressor } from "./online-regressor.ts";

export interface OnlineBanditOptions {
  readonly actions: number;
  readonly kind: "ips" | "dm" | "dr";
  readonly rate: number;
  /** Length of a full vector. */
  readonly size: number;
  /** The range of rewards, known beforehand. Predictions of the reward are clipped to it. */
  readonly rewards: { readonly low: number; readonly high: number };
}

interface LoggedChoice {
  readonly action: number;
  readonly reward: number;
  readonly propensity: number;
}

export interface ProgressiveTerms {
  readonly choice: number;
  readonly ips: number;
  readonly dm: number;
  readonly dr: number;
}

export interface OnlineBandit {
  choose(context: SparseVector): number;
  /** Scores the policy's choice on the decision, then learns from the decision. */
  visit(context: SparseVector, logged: LoggedChoice): ProgressiveTerms;
  /** As `visit`, if the reward of every action is known. Returns the reward of the policy's choice. */
  visitAll(context: SparseVector, rewards: readonly number[]): number;
  /** The weights that score an action. */
  weightsOf(action: number): Float64Array;
}

export function makeOnlineBandit(options: OnlineBanditOptions): OnlineBandit {
  const { actions, kind, rate, size, rewards } = options;
  const make = (range?: { low: number; high: number }) =>
    Array.from({ length: actions }, () => new OnlineRegressor({ size, rate, ...(range ? { range } : {}) }));
  const models = make(rewards);
  // Importance-weighted targets leave the range of rewards, so the policy's own regression is not clipped.
  const scorers = kind === "dm" ? models : make();
  const choose = (context: SparseVector) => bestOf(scorers.map((each) => each.predict(context)));
  return {
    choose,
    visit(context, logged) {
      checkLogged(logged, actions);
      const { action, reward, propensity } = logged;
      const choice = choose(context);
      const predicted = models.map((each) => each.predict(context));
      const weighted = (value: number, at: number) => (at === action ? value / propensity : 0);
      const doubly = (at: number) => predicted[at]! + weighted(reward - predicted[at]!, at);
      models[action]!.learn(context, reward);
      if (kind !== "dm")
        for (const [at, scorer] of scorers.entries())
          scorer.learn(context, kind === "ips" ? weighted(reward, at) : doubly(at));
      return { choice, ips: weighted(reward, choice), dm: predicted[choice]!, dr: doubly(choice) };
    },
    visitAll(context, all) {
      const choice = choose(context);
      for (const [at, scorer] of scorers.entries()) scorer.learn(context, all[at]!);
      return all[choice]!;
    },
    weightsOf: (action) => scorers[action]!.weights(),
  };
}

/** The first of the best scores. */
function bestOf(scores: readonly number[]): number {
  let best = 0;
  for (let at = 1; at < scores.length; at++) if (scores[at]! > scores[best]!) best = at;
  return best;
}

function checkLogged({ action, reward, propensity }: LoggedChoice, actions: number): void {
  const fault =
    !Number.isInteger(action) || action < 0 || action >= actions
      ? `action ${action} is not in 0 … ${actions - 1}`
      : !Number.isFinite(reward)
        ? `reward ${reward} is not finite`
        : !(propensity > 0 && propensity <= 1)
          ? `propensity ${propensity} is not in (0, 1]`
          : undefined;
  if (fault === undefined) return;
  throw new RollbookError(
    "bad-training-data",
    { action, reward: String(reward), propensity: String(propensity) },
    `${fault}. Repair the decision or leave it out.`,
  );
}
