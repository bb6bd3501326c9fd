/** Decides the discount of later rewards in a training, and if the training needs complete chains. */
import { DEFAULT_DISCOUNT, hasChains, type LoggedRow } from "../../learn/index.ts";
import { type Learner, readsChains } from "./learners.ts";

interface Discounted {
  readonly learner: Learner;
  readonly discount?: number | undefined;
}

/** A learner of chains has its own discount; others learn from returns at the discount of the request. */
export function discountOf({ learner, discount }: Discounted): number {
  return (learner.kind === "cql" && readsChains(learner) ? learner.discount : discount) ?? DEFAULT_DISCOUNT;
}

/** True if the return of every row must be known. */
export function readsReturns(request: Discounted, rows: readonly LoggedRow[]): boolean {
  return readsChains(request.learner) || (discountOf(request) > 0 && hasChains(rows));
}
