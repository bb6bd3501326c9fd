/** Finds targets for rollouts that a target has rejected because their policy is newer than it, or not comparable with
 *  it. In: judged rollouts, one after the other. Out: revisions that accept them. Pure; stores one content for each set
 *  of policies. */
import type { Id } from "../../base/index.ts";
import type { PolicyRevision, RolloutContent } from "../../contract/index.ts";
import {
  beyondTarget,
  type FreshnessBudgets,
  type FreshnessRequest,
  measureDrift,
  sourcesOf,
} from "../../keep/admit/index.ts";

export interface FittingTarget {
  readonly revision: Id;
  /** Rejected rollouts that it accepts. */
  readonly rollouts: number;
  /** True if it also accepts every other accepted rollout. Otherwise it fits only the rollouts in which it chose. */
  readonly fitsAll: boolean;
}

interface Alike {
  readonly content: RolloutContent;
  /** Ids of the policies that exclude the rollouts; empty for accepted ones. */
  readonly beyond: readonly string[];
  count: number;
}

export class FittingTargets {
  readonly #request: Pick<FreshnessRequest, "target" | "revision" | "budgets">;
  readonly #alike = new Map<string, Alike>();
  readonly #candidates = new Map<string, PolicyRevision>();

  constructor(request: Pick<FreshnessRequest, "target" | "revision" | "budgets">) {
    this.#request = request;
  }

  see(content: RolloutContent, { isAccepted }: { isAccepted: boolean }): void {
    const { target, revision } = this.#request;
    const beyond = isAccepted ? [] : beyondTarget({ ...this.#request, content });
    if (!isAccepted && beyond.length === 0) return;
    for (const key of beyond) {
      const known = revision(key);
      if (known?.digest === key.digest) this.#candidates.set(key.id, known);
    }
    const sources = sourcesOf(content, target.family).map(({ id, digest }) => `${id} ${digest}`);
    const name = JSON.stringify([isAccepted, sources.sort()]);
    const alike = this.#alike.get(name);
    if (alike === undefined) this.#alike.set(name, { content, beyond: beyond.map(({ id }) => id), count: 1 });
    else alike.count++;
  }

  /** One target that fits all, or the fewest that fit the rejected rollouts. */
  found(): FittingTarget[] {
    const all = [...this.#alike.values()];
    let left = all.filter(({ beyond }) => beyond.length > 0);
    const countOf = (some: readonly Alike[]) => some.reduce((sum, { count }) => sum + count, 0);
    const newestFirst = [...this.#candidates.values()].sort((a, b) => b.producedAtMs - a.producedAtMs);
    const whole = newestFirst.find((target) => all.every(({ content }) => this.#fits(content, target)));
    if (whole !== undefined) return [{ revision: whole.id, rollouts: countOf(left), fitsAll: true }];
    const found: FittingTarget[] = [];
    while (left.length > 0) {
      const [best] = newestFirst
        .map((target) => ({ target, fit: left.filter((each) => this.#fitsOwn(each, target)) }))
        .sort((a, b) => countOf(b.fit) - countOf(a.fit));
      if (best === undefined || best.fit.length === 0) break;
      found.push({ revision: best.target.id, rollouts: countOf(best.fit), fitsAll: false });
      left = left.filter((each) => !best.fit.includes(each));
    }
    return found;
  }

  #fitsOwn({ content, beyond }: Alike, target: PolicyRevision): boolean {
    return beyond.includes(target.id) && this.#fits(content, target);
  }

  /** Without the age of the rollout, which no target changes. */
  #fits(content: RolloutContent, target: PolicyRevision): boolean {
    const { revision, budgets } = this.#request;
    const { outcome } = measureDrift({ content, target, revision, budgets: distanceOf(budgets) });
    return outcome === "accepted-exact" || outcome === "accepted-off-policy";
  }
}

function distanceOf({ drift, policyAgeMs }: FreshnessBudgets) {
  return {
    ...(drift === undefined ? {} : { drift }),
    ...(policyAgeMs === undefined ? {} : { policyAgeMs }),
    unmeasured: "discarded" as const,
  };
}
