/** Whether a rollout is fresh enough to learn from: how far its policy has drifted, how old policy and rollout are.
 *  In: the artifact, the target revision, the source revisions, budgets, the time. Out: an admission (outcome, signals
 *  with the observed value and both budgets, message), which a Receipt records. Pure.
 *  Outcomes by precedence: discarded, quarantined, accepted-exact, accepted-off-policy. */
import { given, parseId, RollbookError } from "../../base/index.ts";
import type {
  DriftBudgets,
  PolicyRevision,
  Receipt,
  RevisionKey,
  RolloutContent,
  RolloutEnvelope,
} from "../../contract/index.ts";

/** At most `accept` is accepted, at most `quarantine` is quarantined, more is discarded. */
export interface Budget {
  readonly accept: number;
  readonly quarantine: number;
}

/** A budget that is absent is not applied. */
export interface FreshnessBudgets {
  /** Revisions between source and target. */
  readonly drift?: Budget;
  /** Between the making of the source revision and of the target. */
  readonly policyAgeMs?: Budget;
  /** Between the rollout's end and its submission. */
  readonly rolloutAgeMs?: Budget;
  /** How far the rollout's end may lie past its submission: two machines never agree to the millisecond. A minute unless
   *  given; beyond it a rollout is from the future. */
  readonly clockSkewMs?: Budget;
}

export const CLOCK_SKEW_MS = 60_000;

export const FRESHNESS_PROFILES = {
  /** Ages are left alone: no single age suits all agents. */
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
  /** The record of a revision that sampled; undefined where there is none. */
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
type Signal = Receipt["signals"][number];

export function checkFreshness(request: FreshnessRequest): Freshness {
  const { envelope, submittedAtMs, budgets } = request;
  checkBudgets(budgets);
  const found = measureSources(request);
  if (found === undefined) return noStream(request.target);
  const { sources, within } = found;
  const ageMs = submittedAtMs - envelope.endedAtMs;
  return conclude(within, [
    ...driftSignals(found, budgets),
    signalOf("rollout-age-ms", Math.max(0, ageMs), budgets.rolloutAgeMs, within),
    signalOf("clock-skew-ms", Math.max(0, -ageMs), budgets.clockSkewMs ?? CLOCK_SKEW, within),
    ...(sources.every(({ measured }) => measured) ? [] : [UNMEASURED]),
  ]);
}

/** The part that follows from the records alone, whatever the time. A drift that cannot be measured excludes nothing unless
 *  the budget says so: a default limit must not discard rollouts whose revisions have no number. */
export function measureDrift(
  request: Pick<FreshnessRequest, "content" | "target" | "revision"> & { readonly budgets: DriftBudgets },
): Freshness {
  const { drift, policyAgeMs } = request.budgets;
  const budgets = given({ drift, policyAgeMs });
  checkBudgets(budgets);
  const found = measureSources({ ...request, budgets });
  if (found === undefined) return noStream(request.target);
  const lost = request.budgets.unmeasured === "discarded" && found.sources.some(({ measured }) => !measured);
  return conclude(found.within, [...driftSignals(found, budgets), ...(lost ? [UNMEASURED] : [])]);
}

type Sampled = Pick<FreshnessRequest, "content" | "target" | "revision" | "budgets">;

/** The revisions that sampled and are not the target; undefined where the target's family sampled nothing. */
function measureSources(request: Sampled): MeasuredSources | undefined {
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

/** An exact rollout has drifted by nothing; otherwise the source that is furthest off counts. */
function driftSignals({ sources, within }: MeasuredSources, budgets: FreshnessBudgets): Signal[] {
  return [
    worst(
      sources.map(({ drift }) => signalOf("drift", drift, budgets.drift, within)),
      signalOf("drift", 0, budgets.drift, within),
    ),
    worst(
      sources.map(({ ageMs }) => signalOf("policy-age-ms", ageMs, budgets.policyAgeMs, within)),
      signalOf("policy-age-ms", 0, budgets.policyAgeMs, within),
    ),
  ];
}

function conclude(within: FreshnessOutcome, signals: Signal[]): Freshness {
  const outcome = RANK.find((rank) => signals.some((signal) => signal.outcome === rank)) ?? within;
  return { outcome, signals, message: messageOf(outcome, signals) };
}

function noStream({ family }: PolicyRevision): Freshness {
  return { outcome: "unknown", signals: [], message: `holds no stream of ${family}` };
}

const CLOCK_SKEW: Budget = { accept: CLOCK_SKEW_MS, quarantine: CLOCK_SKEW_MS };
const RANK = ["discarded", "quarantined"] as const;

interface Measured {
  /** Negative: the source is ahead of the target. Null: unknowable. */
  drift: number | null;
  ageMs: number | null;
  /** Whether some budget says how far off is too far. */
  measured: boolean;
}

function measure({ target, revision, budgets }: Sampled, key: RevisionKey): Measured {
  const source = revision(key);
  // A record of the same name with other weights is not this revision's record.
  const known = source?.digest === key.digest && source.family === target.family ? source : undefined;
  const numbered = known?.number !== undefined && target.number !== undefined;
  const drift = numbered ? Number(target.number! - known.number!) : descent(target, key, revision);
  // 0: logged by its name alone, without a time of production.
  const dated = known !== undefined && known.producedAtMs > 0 && target.producedAtMs > 0;
  const ageMs = dated ? target.producedAtMs - known.producedAtMs : null;
  const measured =
    (drift !== null && budgets.drift !== undefined) || (ageMs !== null && budgets.policyAgeMs !== undefined);
  return { drift, ageMs, measured };
}

/** How many generations `source` is behind `target`, where revisions name their parents instead of numbers. */
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

/** What lies in the future is discarded whatever the budget; without a budget or an observation nothing is decided. */
function signalOf(
  name: string,
  observed: number | null,
  budget: Budget | undefined,
  within: FreshnessOutcome,
): Signal {
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

/** A policy with an unknown distance to the target. */
const UNMEASURED: Signal = {
  name: parseId("unmeasured-mismatch"),
  observed: null,
  acceptBudget: null,
  quarantineBudget: null,
  outcome: "discarded",
};

const SEVERITY: readonly Signal["outcome"][] = [
  "accepted-exact",
  "accepted-off-policy",
  "unknown",
  "quarantined",
  "discarded",
];

/** The harshest signal; among equals the one furthest off. */
function worst(signals: readonly Signal[], none: Signal): Signal {
  const severity = ({ outcome }: Signal) => SEVERITY.indexOf(outcome);
  const size = ({ observed }: Signal) => Math.abs(observed ?? 0);
  return [...signals].sort((a, b) => severity(b) - severity(a) || size(b) - size(a))[0] ?? none;
}

function sourcesOf(content: RolloutContent, family: string): RevisionKey[] {
  const keys = new Map<string, RevisionKey>();
  for (const stream of content.streams) {
    if (stream.family !== family) continue;
    for (const { revision } of stream.level === "token" ? stream.segments : stream.steps)
      keys.set(revision.id, revision);
  }
  return [...keys.values()];
}

function messageOf(outcome: FreshnessOutcome, signals: readonly Signal[]): string {
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
