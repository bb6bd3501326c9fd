/** Adds the candidate facts of the configuration as features for policies and constraints.
 *  In: candidates as asked, the declared facts. Out: candidates with both; declared facts override those of the
 *  request. */
import { type DecisionCandidate, parseStaticTable, type StaticTable } from "../policy/index.ts";
import type { DeclaredFacts, RouterConfig } from "./config.ts";

export type Declare = (candidates: readonly DecisionCandidate[]) => readonly DecisionCandidate[];

export function declareWith({ candidates: facts }: Pick<RouterConfig, "candidates">): Declare {
  const declared = new Map(
    Object.entries(facts)
      .map(([id, each]) => [id, featuresOf(each)] as const)
      .filter(([, features]) => Object.keys(features).length > 0),
  );
  if (declared.size === 0) return (candidates) => candidates;
  // A gateway passes the same list object while no candidate fails, so the result is cached by list.
  const known = new WeakMap<readonly DecisionCandidate[], readonly DecisionCandidate[]>();
  return (candidates) => {
    let all = known.get(candidates);
    if (all !== undefined) return all;
    all = candidates.map((one) => {
      const features = declared.get(one.id);
      return features === undefined
        ? one
        : Object.freeze({ ...one, features: { ...one.features, ...features } });
    });
    if (Object.isFrozen(candidates)) known.set(candidates, Object.freeze(all));
    return all;
  };
}

/** Declared candidates on their own, all of them selectable. */
export function declaredCandidates({ candidates }: Pick<RouterConfig, "candidates">): DecisionCandidate[] {
  return Object.entries(candidates).map(([id, facts]) => ({
    ...{ id, selectable: true, reasons: [], features: featuresOf(facts) },
  }));
}

/** Default if no table is configured: candidates sorted by declared worth if every one has a quality, else in list
 *  order. */
export function defaultTable(
  config: Pick<RouterConfig, "candidates" | "costWeight">,
  ids: readonly string[],
): StaticTable {
  const worth = (id: string) => worthOf(config.candidates[id], config.costWeight);
  return listTable(hasWorth(config, ids) ? [...ids].sort((a, b) => worth(b)! - worth(a)!) : ids);
}

/** True if every candidate declares a quality. */
export function hasWorth({ candidates }: Pick<RouterConfig, "candidates">, ids: readonly string[]): boolean {
  return ids.every((id) => candidates[id]?.quality !== undefined);
}

export function listTable(ids: readonly string[]): StaticTable {
  const source = { schema: "rollbook.static-table.v1", default: ids };
  return parseStaticTable(JSON.stringify(source), "the list of candidates");
}

/** Declared quality minus the weighted price of a call; undefined if no quality is declared. */
export function worthOf(
  facts: Pick<DeclaredFacts, "quality" | "callPrice"> | undefined,
  costWeight: number,
): number | undefined {
  if (facts?.quality === undefined) return undefined;
  return facts.quality - costWeight * (facts.callPrice ?? 0);
}

function featuresOf({ quality, callPrice, price, latencyMs, contextTokens }: DeclaredFacts) {
  const features = {
    ...{ quality, callPrice, latencyMs, contextTokens },
    ...{ promptPrice: price?.prompt, completionPrice: price?.completion },
  };
  const stated = Object.entries(features).filter(([, value]) => value !== undefined);
  return Object.fromEntries(stated) as Record<string, number>;
}
