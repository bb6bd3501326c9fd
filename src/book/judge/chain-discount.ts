/** Decides if policies are judged by complete chains, and at which discount: that of the returns they learned from.
 *  In: rows, policies, the given discount. Out: the discount; undefined if each decision is judged by its own
 *  outcome. */
import { RollbookError } from "../../base/index.ts";
import { DEFAULT_DISCOUNT, hasChains, type LoggedRow, returnDiscount } from "../../learn/index.ts";
import type { LoadedPolicy } from "./load-policy.ts";

export function chainDiscount(
  rows: readonly LoggedRow[],
  candidates: readonly LoadedPolicy[],
  stated: number | undefined,
): number | undefined {
  // Without chains a return is a reward, and more bounds are available for single decisions.
  if (!hasChains(rows)) return undefined;
  const discount = stated ?? learnedDiscount(candidates) ?? DEFAULT_DISCOUNT;
  return discount === 0 ? undefined : discount;
}

function learnedDiscount(candidates: readonly LoadedPolicy[]): number | undefined {
  const all = new Set(candidates.flatMap(({ checkpoint }) => returnDiscount(checkpoint.model) ?? []));
  if (all.size < 2) return [...all][0];
  throw new RollbookError(
    "bad-options",
    { discounts: [...all] },
    `the candidates learned from returns at the discounts ${[...all].join(" and ")}. State the one to judge by with --discount.`,
  );
}
