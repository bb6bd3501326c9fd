/** Logs warnings about a run that continues nevertheless.
 *  In: the run. Out: lines of its log. Refuses a run that could never release a policy. */
import { plural, RollbookError } from "../base/index.ts";
import { readsChains } from "../book/train/index.ts";
import { DEFAULT_DISCOUNT } from "../learn/index.ts";
import type { LoopConfig } from "./config.ts";
import type { RunContext } from "./stage-parts.ts";

/** `chains` is the number of rollouts with more than one decision. Weights multiply along a rollout, so many decisions
 *  need many rollouts. */
export function noteChains({ config, log }: RunContext, chains: number): void {
  if (chains === 0) return;
  const discount = judgedDiscount(config) ?? DEFAULT_DISCOUNT;
  const { method } = config.gate;
  if (discount > 0 && method !== "student-t")
    log(
      `warning: ${plural(chains, "rollout")} with more than one decision, and gate.method: ${method} has no bounds for whole rollouts: the gate will refuse every policy of this run. Stop it with \`rollbook run stop ${config.options}\`, and start another run with gate.method: student-t or discount: 0.`,
    );
  log(
    discount === 0
      ? `note: ${plural(chains, "rollout")} with more than one decision. Each decision learns from its own reward and is judged by it (discount: 0).`
      : `note: ${plural(chains, "rollout")} with more than one decision. Each decision learns from the return from there on (discount ${discount}), and the gate judges whole rollouts. That takes more rollouts for every further decision: to keep one decision a rollout, ask for the route in the first call and name the model that answered (header x-rollbook-model) in later ones.`,
  );
}

/** An agent that asks a model server directly fails without its key, and its own error may not name the reason. */
export function noteHidden({ log }: Pick<RunContext, "log">, variables: readonly string[]): void {
  if (variables.length === 0) return;
  log(
    `note: the agent does not get ${variables.join(", ")}, because the gateway reads its secrets from there. If the agent needs such a key itself, set it in another variable too.`,
  );
}

/** Checked before a run begins, and not of a run that exists: its configuration cannot change. A given discount judges
 *  complete rollouts, also those with one decision. */
export function requireBounds(config: LoopConfig): void {
  const { method, epsilonCost, costRange } = config.gate;
  if (method === "student-t") return;
  if (epsilonCost !== null && costRange === undefined)
    throw new RollbookError(
      "no-bounds",
      { method, epsilonCost },
      `gate.epsilonCost with method: ${method} needs gate.costRange, the range of costs, so the gate would refuse every policy. State gate.costRange, or remove gate.epsilonCost.`,
    );
  const discount = judgedDiscount(config) ?? 0;
  if (discount === 0) return;
  throw new RollbookError(
    "no-bounds",
    { method, discount },
    `gate.method: ${method} has no bounds for whole rollouts (discount ${discount}), so the gate would refuse every policy. Use gate.method: student-t, or state discount: 0.`,
  );
}

/** Discount of the run, else that of its learner of chains; undefined means the default. */
export function judgedDiscount({ discount, learners }: LoopConfig): number | undefined {
  const chained = learners.flatMap((learner) =>
    learner.kind === "cql" && readsChains(learner) ? learner.discount : [],
  );
  return discount ?? chained[0];
}
