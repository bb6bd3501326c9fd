/** Turns freshness checks into records: receipts, verdicts, and the release of quarantined rollouts. Pure. Batches obey
 *  verdicts: a manifest that lists them excludes what they exclude, and the ledger records it. */
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

/** Validator name of freshness verdicts. */
export const FRESHNESS_VALIDATOR: Id = parseId("freshness");

export interface AdmissionOptions extends Pick<FreshnessRequest, "revision" | "budgets"> {
  /** The current target revision; called for every rollout, because the target advances. */
  readonly target: () => FreshnessRequest["target"];
}

/** Implements `admit` of the worker protocol: checks a submission, and adds the verdict to the stored records. */
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

/** For artifacts that were not uploaded by a worker. */
export function freshnessReceipt(
  freshness: Freshness,
  at: { subject: Digest; atMs: number },
): Sealed<Receipt> {
  const { outcome, signals, message } = freshness;
  return seal(Receipt, { ...at, outcome, signals, message });
}

/** Verdict for one family: a rollout may be stale for one family and fresh for another. */
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

/** Releases a quarantined rollout for batches. Overrides this one verdict, and no later verdict of the same
 *  validator. */
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
