/** Decides if a rollout is fresh enough to learn from: the drift of its policy, and the age of policy and rollout.
 *  In: the artifact, the target revision, the source revisions, budgets, the time. Out: an admission (outcome, signals
 *  with the observed value and both budgets, message), which a Receipt records. Pure. Outcomes by precedence:
 *  discarded, quarantined, accepted-exact, accepted-off-policy. */
import { given, parseId, RollbookError } from "../../base/index.ts";
import {
  type DriftBudgets,
  isOnlyLogged,
  type PolicyRevision,
  type Receipt,
  type RevisionKey,
  type RolloutContent,
  type RolloutEnvelope,
} from "../../contract/index.ts";

/** A value up to `accept` is accepted, a value up to `quarantine` is quarantined, and a larger value is discarded. */
export interface Budget {
  readonly accept: number;
  readonly quarantine: number;
}

/** An absent budget is not applied. */
export interface FreshnessBudgets {
  /** Number of revisions between source and target. */
  readonly drift?: Budget;
  /** Time between the production of the source revision and that of the target. */
  readonly policyAgeMs?: Budget;
  /** Time between the rollout's end and its submission. */
  readonly rolloutAgeMs?: Budget;
  /** Limit on how far the rollout's end may lie after its submission, because two clocks never agree exactly. Default:
   *  one minute. A larger value means that the rollout is from the future. */
  readonly clockSkewMs?: Budget;
}

export const CLOCK_SKEW_MS = 60_000;

export const FRESHNESS_PROFILES = {
  /** No age budgets by default: no single age suits all agents. */
  default: { drift: { accept: 3, quarantine: 5 } },
  psionic: {
    drift: { accept: 3, quarantine: 5 },
    rolloutAgeMs: { accept: 30_000, quarantine: 60_000 },
    clockSkewMs: { accept: 0, quarantine: 0 },
  },
} as const satisfies Record<string, FreshnessBudgets>;

export interface FreshnessRequest {
  readonly content: RolloutContent;
  readonly envelope: RolloutEnvelope;
  readonly target: PolicyRevision;
  /** Record of a sampling revision; undefined if there is none. */
  readonly revision: (key: RevisionKey) => PolicyRevision | undefined;
  readonly submittedAtMs: number;
  readonly budgets: FreshnessBudgets;
}

export type Freshness = Pick<Receipt, "signals" | "message"> & { readonly outcome: FreshnessOutcome };
export type FreshnessOutcome =
  | "accepted-exact"
  | "accepted-off-policy"
  | "quarantined"
  | "discarded"
  | "unknown";
export type FreshnessSignal = Receipt["signals"][number];

export function checkFreshness(request: FreshnessRequest): Freshness {
  const { envelope, submittedAtMs, budgets } = request;
  checkBudgets(budgets);
  const found = measureSources(request);
  if (found === undefined) return noStream(request.target);
  const { sources, within } = found;
  const ageMs = submittedAtMs - envelope.endedAtMs;
  return conclude(within, [
    ...driftSignals(found, budgets, "discarded"),
    signalOf("rollout-age-ms", Math.max(0, ageMs), budgets.rolloutAgeMs, within),
    signalOf("clock-skew-ms", Math.max(0, -ageMs), budgets.clockSkewMs ?? CLOCK_SKEW, within),
    ...(sources.every(({ measured }) => measured) ? [] : [UNMEASURED]),
  ]);
}

/** The part that depends on the records alone, not on the current time. By default a drift that cannot be measured
 *  excludes nothing: a default limit must not discard rollouts whose revisions have no number. */
export function measureDrift(
  request: Pick<FreshnessRequest, "content" | "target" | "revision"> & { readonly budgets: DriftBudgets },
): Freshness {
  const { drift, policyAgeMs } = request.budgets;
  const budgets = given({ drift, policyAgeMs });
  checkBudgets(budgets);
  const found = measureSources({ ...request, budgets });
  if (found === undefined) return noStream(request.target);
  const { unmeasured } = request.budgets;
  const lost = unmeasured !== undefined && found.sources.some(({ measured }) => !measured);
  const unaged = unmeasured === "discarded-each" ? "discarded" : "unknown";
  return conclude(found.within, [...driftSignals(found, budgets, unaged), ...(lost ? [UNMEASURED] : [])]);
}

type Sampled = Pick<FreshnessRequest, "content" | "target" | "revision" | "budgets">;

/** Sampling revisions other than the target; undefined if the target's family sampled nothing. */
export function measureSources(request: Sampled): MeasuredSources | undefined {
  const { content, target } = request;
  const keys = sourcesOf(content, target.family);
  if (keys.length === 0) return undefined;
  const others = keys.filter((key) => key.digest !== target.digest);
  return {
    within: others.length === 0 ? "accepted-exact" : "accepted-off-policy",
    sources: others.map((key) => measure(request, key)),
  };
}

interface MeasuredSources {
  readonly sources: readonly Measured[];
  readonly within: "accepted-exact" | "accepted-off-policy";
}

/** An exact rollout has drift 0; otherwise the most distant source counts. `unaged`: outcome of an unknown policy age
 *  that has a budget. */
function driftSignals(
  { sources, within }: MeasuredSources,
  budgets: FreshnessBudgets,
  unaged: "discarded" | "unknown",
): FreshnessSignal[] {
  return [
    worst(
      sources.map(({ drift }) => signalOf("drift", drift, budgets.drift, within)),
      signalOf("drift", 0, budgets.drift, within),
    ),
    worst(
      sources.map(({ ageMs }) => {
        const signal = signalOf("policy-age-ms", ageMs, budgets.policyAgeMs, within);
        return ageMs === null && budgets.policyAgeMs !== undefined ? { ...signal, outcome: unaged } : signal;
      }),
      signalOf("policy-age-ms", 0, budgets.policyAgeMs, within),
    ),
  ];
}

function conclude(within: FreshnessOutcome, signals: FreshnessSignal[]): Freshness {
  const outcome = RANK.find((rank) => signals.some((signal) => signal.outcome === rank)) ?? within;
  return { outcome, signals, message: messageOf(outcome, signals) };
}

function noStream({ family }: PolicyRevision): Freshness {
  return { outcome: "unknown", signals: [], message: `holds no stream of ${family}` };
}

const CLOCK_SKEW: Budget = { accept: CLOCK_SKEW_MS, quarantine: CLOCK_SKEW_MS };
/** Outcomes that exclude a rollout, the more severe first. */
export const RANK = ["discarded", "quarantined"] as const;

interface Measured {
  readonly key: RevisionKey;
  /** Negative: the source is ahead of the target. Null: unknown. */
  drift: number | null;
  ageMs: number | null;
  /** True if a budget applies to a known distance. */
  measured: boolean;
}

function measure({ target, revision, budgets }: Sampled, key: RevisionKey): Measured {
  const known = sourceOf(key, { target, revision });
  const drift = driftFrom(key, { target, revision });
  const dated = known !== undefined && !isOnlyLogged(known) && !isOnlyLogged(target);
  const ageMs = dated ? target.producedAtMs - known.producedAtMs : null;
  const measured =
    (drift !== null && budgets.drift !== undefined) || (ageMs !== null && budgets.policyAgeMs !== undefined);
  return { key, drift, ageMs, measured };
}

/** Revisions that a source is behind the target, by their numbers, else along the recorded parents. Negative: the source
 *  is ahead of the target. Null: unknown. */
export function driftFrom(key: RevisionKey, at: Pick<Sampled, "target" | "revision">): number | null {
  const known = sourceOf(key, at);
  return known?.number !== undefined && at.target.number !== undefined
    ? Number(at.target.number - known.number)
    : descent(at.target, key, at.revision);
}

/** A record with the same name but other weights belongs to another revision. */
function sourceOf(
  key: RevisionKey,
  { target, revision }: Pick<Sampled, "target" | "revision">,
): PolicyRevision | undefined {
  const source = revision(key);
  return source?.digest === key.digest && source.family === target.family ? source : undefined;
}

/** Number of generations that `source` is behind `target`, for revisions that name parents instead of numbers. */
function descent(
  target: PolicyRevision,
  source: RevisionKey,
  revision: FreshnessRequest["revision"],
): number | null {
  const seen = new Set<string>();
  let at: PolicyRevision | undefined = target;
  for (let steps = 1; at?.parent !== undefined && !seen.has(at.digest); steps++) {
    seen.add(at.digest);
    const { parent }: { parent: RevisionKey } = at as { parent: RevisionKey };
    if (parent.digest === source.digest) return steps;
    const next = revision(parent);
    at = next?.digest === parent.digest ? next : undefined;
  }
  return null;
}

/** A negative value lies in the future and is discarded under any budget. Without a budget or an observation the
 *  outcome is unknown. */
function signalOf(
  name: string,
  observed: number | null,
  budget: Budget | undefined,
  within: FreshnessOutcome,
): FreshnessSignal {
  const outcome =
    observed === null
      ? "unknown"
      : observed < 0
        ? "discarded"
        : budget === undefined
          ? "unknown"
          : observed <= budget.accept
            ? within
            : observed <= budget.quarantine
              ? "quarantined"
              : "discarded";
  const { accept = null, quarantine = null } = budget ?? {};
  return { name: parseId(name), observed, acceptBudget: accept, quarantineBudget: quarantine, outcome };
}

/** Signal for a policy with an unknown distance to the target. */
const UNMEASURED: FreshnessSignal = {
  name: parseId("unmeasured-mismatch"),
  observed: null,
  acceptBudget: null,
  quarantineBudget: null,
  outcome: "discarded",
};

const SEVERITY: readonly FreshnessSignal["outcome"][] = [
  "accepted-exact",
  "accepted-off-policy",
  "unknown",
  "quarantined",
  "discarded",
];

/** The most severe signal; among equals the most distant. */
function worst(signals: readonly FreshnessSignal[], none: FreshnessSignal): FreshnessSignal {
  const severity = ({ outcome }: FreshnessSignal) => SEVERITY.indexOf(outcome);
  const size = ({ observed }: FreshnessSignal) => Math.abs(observed ?? 0);
  return [...signals].sort((a, b) => severity(b) - severity(a) || size(b) - size(a))[0] ?? none;
}

/** Revisions of the family that made choices of a rollout. */
export function sourcesOf(content: Pick<RolloutContent, "streams">, family: string): RevisionKey[] {
  const keys = new Map<string, RevisionKey>();
  for (const stream of content.streams) {
    if (stream.family !== family) continue;
    for (const { revision } of stream.level === "token" ? stream.segments : stream.steps)
      keys.set(revision.id, revision);
  }
  return [...keys.values()];
}

/** Ledgers of batches seal this text, and a repeated batch must have the same bytes: it never changes. */
function messageOf(outcome: FreshnessOutcome, signals: readonly FreshnessSignal[]): string {
  const causes = signals
    .filter((signal) => signal.outcome === outcome && RANK.includes(outcome as never))
    .map(({ name, observed, acceptBudget, quarantineBudget }) => {
      if (observed === null) return `${name}`;
      return observed < 0
        ? `${name} ${observed} lies in the future`
        : `${name} ${observed} (accepts ${acceptBudget}, quarantines ${quarantineBudget})`;
    });
  return [outcome, ...causes].join("; ");
}

function checkBudgets(budgets: FreshnessBudgets): void {
  for (const [name, budget] of Object.entries(budgets) as [string, Budget | undefined][]) {
    if (budget === undefined) continue;
    const { accept, quarantine } = budget;
    if (accept >= 0 && accept <= quarantine && Number.isFinite(quarantine)) continue;
    throw new RollbookError(
      "bad-budget",
      { name, accept, quarantine },
      `the ${name} budget accepts ${accept} and quarantines ${quarantine}: give 0 ≤ accept ≤ quarantine.`,
    );
  }
}
