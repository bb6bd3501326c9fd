/** Says in words why a freshness check did not accept a rollout, and which targets would accept it.
 *  In: a check and its request. Out: text that names the policies it speaks of, or their keys. Pure. */
import { plural } from "../../base/index.ts";
import type { RevisionKey } from "../../contract/index.ts";
import {
  type Freshness,
  type FreshnessRequest,
  type FreshnessSignal,
  measureSources,
  RANK,
} from "./freshness.ts";

type Compared = Pick<FreshnessRequest, "content" | "target" | "revision" | "budgets">;
type Sources = NonNullable<ReturnType<typeof measureSources>>["sources"];

/** Empty if the rollout was accepted. */
export function explainFreshness({ outcome, signals }: Freshness, request: Compared): string {
  if (outcome === "unknown") return "it holds no choice by the target's family";
  const sources = measureSources(request)?.sources ?? [];
  const told = signals.filter((signal) => signal.outcome === outcome && RANK.includes(outcome as never));
  // A policy with a larger number is also younger: one reason is enough.
  const [first] = told.filter(isNewer);
  return told
    .filter((signal) => signal === first || !isNewer(signal))
    .map((signal) => explainSignal(signal, sources))
    .join("; ");
}

function isNewer({ name, observed }: FreshnessSignal): boolean {
  return (`${name}` === "drift" || `${name}` === "policy-age-ms") && (observed ?? 0) < 0;
}

/** The policies that exclude a rollout regardless of the limits: newer than the target, or not comparable with it. */
export function beyondTarget(request: Compared): RevisionKey[] {
  const sources = measureSources(request)?.sources ?? [];
  return sources
    .filter(({ drift, ageMs, measured }) => !measured || (drift ?? 0) < 0 || (ageMs ?? 0) < 0)
    .map(({ key }) => key);
}

function explainSignal(
  { name, observed, acceptBudget, quarantineBudget }: FreshnessSignal,
  sources: Sources,
): string {
  const limitsIn = (unit: number) =>
    `accepted up to ${acceptBudget! / unit}, quarantined up to ${quarantineBudget! / unit}`;
  const seconds = `${Math.abs(observed ?? 0) / 1000} s`;
  switch (`${name}`) {
    case "drift": {
      const policy = named(sources, ({ drift }) => drift === observed);
      const amount = plural(Math.abs(observed!), "revision");
      return observed! < 0
        ? `${policy} is ${amount} newer than the target`
        : `${policy} is ${amount} behind the target (${limitsIn(1)})`;
    }
    case "policy-age-ms": {
      const policy = named(sources, ({ ageMs }) => ageMs === observed);
      if (observed === null)
        return `the age of ${policy} is unknown: no record says when it, or the target, was made`;
      return observed < 0
        ? `${policy} was made ${seconds} after the target`
        : `${policy} is ${seconds} older than the target (${limitsIn(1000)} s)`;
    }
    case "rollout-age-ms":
      return `it was submitted ${seconds} after its end (${limitsIn(1000)} s)`;
    case "clock-skew-ms":
      return `it ended ${seconds} after its submission (${limitsIn(1000)} s)`;
    default: {
      const policy = named(sources, ({ measured }) => !measured);
      return `the distance of ${policy} from the target is unknown: neither revision numbers nor parents connect the two`;
    }
  }
}

function named(sources: Sources, is: (source: Sources[number]) => boolean): string {
  return `its policy ${sources.find(is)!.key.id}`;
}
