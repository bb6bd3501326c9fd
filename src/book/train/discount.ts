/** What a reward one decision later is worth in a training, and whether the training needs whole chains. */
import { DEFAULT_DISCOUNT, hasChains, type LoggedRow } from "../../learn/index.ts";
import { type Learner, readsChains } from "./learners.ts";

interface Discounted {
  readonly learner: Learner;
  readonly discount?: number | undefined;
}

/** A learner of chains has its own discount; others learn from returns at that of the request. */
export function discountOf({ learner, discount }: Discounted): number {
  return (learner.kind === "cql" && readsChains(learner) ? learner.discount : discount) ?? DEFAULT_DISCOUNT;
}

/** Whether a return must be known of every row. */
export function readsReturns(request: Discounted, rows: readonly LoggedRow[]): boolean {
  return readsChains(request.learner) || (discountOf(request) > 0 && hasChains(rows));
}
