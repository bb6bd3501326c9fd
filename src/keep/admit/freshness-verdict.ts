/** From checks to records: receipts and verdicts of freshness, and the release of what was quarantined. Pure.
 *  Verdicts are what batches obey: a manifest that lists them excludes what they exclude, and the ledger says so. */
import { type Digest, type Id, parseId } from "../../base/index.ts";
import {
  type Disposition,
  FULL_WEIGHT_BPS,
  QuarantineRelease,
  Receipt,
  type RolloutContent,
  type RolloutEnvelope,
  refuse,
  type Sealed,
  seal,
  Verdict,
} from "../../contract/index.ts";
import { checkFreshness, type Freshness, type FreshnessOutcome, type FreshnessRequest } from "./freshness.ts";

/** The name under which freshness gives its verdicts. */
export const FRESHNESS_VALIDATOR: Id = parseId("freshness");

export interface AdmissionOptions extends Pick<FreshnessRequest, "revision" | "budgets"> {
  /** The revision that is being improved now; asked for every rollout, because it advances. */
  readonly target: () => FreshnessRequest["target"];
}

/** For the worker protocol's `admit`: checks what is submitted, and adds the verdict to what is kept. */
export function makeAdmission(options: AdmissionOptions) {
  return (submitted: {
    content: RolloutContent;
    envelope: RolloutEnvelope;
    digest: Digest;
    nowMs: number;
  }): Freshness & { records: readonly Sealed<Verdict>[] } => {
    const { content, envelope, digest: subject, nowMs: atMs } = submitted;
    const { revision, budgets } = options;
    const target = options.target();
    const request = { content, envelope, target, revision, budgets, submittedAtMs: atMs };
    const freshness = checkFreshness(request);
    const { family } = target;
    return { ...freshness, records: [freshnessVerdict(freshness, { subject, family, atMs })] };
  };
}

/** For artifacts that came another way than by upload. */
export function freshnessReceipt(
  freshness: Freshness,
  at: { subject: Digest; atMs: number },
): Sealed<Receipt> {
  const { outcome, signals, message } = freshness;
  return seal(Receipt, { ...at, outcome, signals, message });
}

/** Of one family alone: what is stale for a router may be fresh for a writer. */
export function freshnessVerdict(
  freshness: Freshness,
  at: { subject: Digest; family: Id; atMs: number },
): Sealed<Verdict> {
  const disposition = DISPOSITIONS[freshness.outcome];
  return seal(Verdict, {
    ...at,
    validator: FRESHNESS_VALIDATOR,
    disposition,
    weightBps: disposition === "rejected" ? 0 : FULL_WEIGHT_BPS,
    codes: disposition === "rejected" ? ["stale-policy-rejected"] : [],
    observations: freshness.signals.map(({ name, observed, acceptBudget, quarantineBudget }) => ({
      name,
      observed,
      expected: { accept: acceptBudget, quarantine: quarantineBudget },
    })),
  });
}

const DISPOSITIONS: Readonly<Record<FreshnessOutcome, Disposition>> = {
  "accepted-exact": "accepted",
  "accepted-off-policy": "accepted",
  quarantined: "quarantined",
  discarded: "rejected",
  unknown: "unobserved",
};

/** Lets a quarantined rollout into batches. It undoes this one verdict, and no later one by the same validator. */
export function releaseQuarantined(
  verdict: Sealed<Verdict>,
  by: { by: Id; reason: string; atMs: number },
): Sealed<QuarantineRelease> {
  const { subject, disposition } = verdict.record;
  if (disposition !== "quarantined")
    throw refuse(
      "bad-record",
      { verdict: verdict.digest, disposition },
      `the verdict ${verdict.digest} says ${disposition}; only quarantined rollouts are released.`,
    );
  return seal(QuarantineRelease, { subject, verdict: verdict.digest, ...by });
}
