/** The reward that a decision learns from: the return of its rollout from there on.
 *  In: logged rows of whole chains, a discount. Out: the same rows with returns for rewards; the discount in a model.
 *  Pure. The reward of a rollout is stored at its last decision.
 *  Without returns, every earlier decision would earn 0. */
import type { PolicyModel } from "../../policy/index.ts";
import type { LoggedRow, RewardTerms } from "./decision-row.ts";
import { isFullInformation, type OutcomeRow, priceOf, spentToGo } from "./outcomes.ts";
import { compareNatural, rowsByChain } from "./whole-chains.ts";

/** Default discount per decision: the return of a rollout is the plain sum of its rewards. */
export const DEFAULT_DISCOUNT = 1;

/** True if returns can differ from rewards: a chain has several decisions, and the log is not full information. */
export function hasChains(rows: readonly LoggedRow[]): boolean {
  return new Set(rows.map(({ chain }) => chain)).size < rows.length && !isFullInformation(rows);
}

/** A decision whose reward is its return. */
type ReturnRow = LoggedRow & Pick<OutcomeRow, "priceToGo">;

/** The rows with discounted sums from each decision to the end of its chain: of rewards, reward terms, prices of the
 *  choices, and call costs. A chain that a limit cut has the sum of its recorded rewards.
 *  A sum that lacks a part is unknown. */
export function returnsToGo(rows: readonly LoggedRow[], discount: number): readonly ReturnRow[] {
  if (discount === 0 || !hasChains(rows)) return rows;
  const returns = new Map<string, ReturnRow>();
  for (const chain of rowsByChain(rows).values()) {
    let after: ReturnRow | undefined;
    for (const row of [...chain].sort((a, b) => compareNatural(b.id, a.id))) {
      after = after === undefined ? row : plusLater(row, after, discount);
      returns.set(row.id, after);
    }
  }
  return rows.map(({ id }) => returns.get(id)!);
}

function plusLater(row: LoggedRow, later: ReturnRow, discount: number): ReturnRow {
  const { costUsd: _, ...rest } = row;
  const sum = (now: number, then: number) => now + discount * then;
  const [price, laterPrice] = [priceOf(row), priceOf(later)];
  const [spent, laterSpent] = [spentToGo(row), spentToGo(later)];
  return {
    ...rest,
    reward: row.reward === null || later.reward === null ? null : sum(row.reward, later.reward),
    terms: termsToGo(row.terms, later.terms, discount),
    ...(spent === undefined || laterSpent === undefined ? {} : { costUsd: sum(spent, laterSpent) }),
    priceToGo: price === undefined || laterPrice === undefined ? null : sum(price, laterPrice),
  };
}

function termsToGo(now: RewardTerms, later: RewardTerms, discount: number): RewardTerms {
  const terms: Record<string, RewardTerms[string]> = { ...now };
  for (const [name, then] of Object.entries(later)) {
    const own = now[name];
    const weight = own === undefined || own.weight === then.weight ? then.weight : 1;
    // Terms of different weights add up as parts of the reward: value times weight.
    const worthOf = (term: RewardTerms[string]) =>
      term.weight === weight ? term.value : term.value * term.weight;
    terms[name] = { value: (own === undefined ? 0 : worthOf(own)) + discount * worthOf(then), weight };
  }
  return terms;
}

/** The model with the discount of the returns behind its weights and its floor. */
export function withReturnDiscount(model: PolicyModel, discount: number): PolicyModel {
  return { ...model, config: { ...model.config, returnDiscount: discount } };
}

/** Undefined if no chain of the training rows had several decisions.
 *  Old checkpoints of cql keep it as their `discount`. */
export function returnDiscount(model: PolicyModel): number | undefined {
  const { algorithm, discount } = model.config as {
    readonly algorithm?: unknown;
    readonly discount?: unknown;
  };
  const option = algorithm === "cql" && typeof discount === "number" && discount > 0 ? discount : undefined;
  return keptDiscount(model) ?? option;
}

/** The discount of the returns behind the floor. If the checkpoint has none: 0, the decision's own reward. */
export function floorDiscount(model: PolicyModel): number {
  return keptDiscount(model) ?? 0;
}

function keptDiscount({ config }: PolicyModel): number | undefined {
  const { returnDiscount: found } = config as { readonly returnDiscount?: unknown };
  return typeof found === "number" ? found : undefined;
}
