/** The loss ledger: rows that did not reach a batch, each with its reason. Considered = batched + excluded, for
 *  artifacts, streams, samples and tokens. */
import * as z from "zod";
import { count, defineRecord, digest, finite, type RecordOf, refuse, text } from "../codec/index.ts";

const exclusionReason = z.enum([
  "other-family",
  "other-level",
  "other-logprob-kind",
  "other-tokenizer",
  "failed-task",
  "failed-provider",
  "failed-sandbox",
  "failed-infrastructure",
  "cancelled",
  "task-quarantined",
  "not-accepted",
  "no-verdict",
  "unobserved",
  "quarantined",
  "replay-required",
  "rejected",
  "stale",
  "zero-weight",
  "unlabelled",
  "no-propensity",
  "no-group",
  "too-long",
  "held-out",
  "already-batched",
  "duplicate-rollout",
]);
export type ExclusionReason = z.output<typeof exclusionReason>;

/** A value up to `accept` is accepted, a value up to `quarantine` is quarantined, and a larger value is discarded. */
const budget = z.strictObject({ accept: finite, quarantine: finite });
/** Limits on how far the sampling policy may lie behind the target. Both are computed from the records alone, so the
 *  current time has no effect. */
export const driftBudgets = z.strictObject({
  /** Drift in revisions. */
  drift: z.optional(budget),
  /** Time between the production of the source revision and that of the target. */
  policyAgeMs: z.optional(budget),
  /** "discarded": if none of the limits can be measured, the policy counts as too far. "discarded-each": also if the
   *  policy age alone cannot be measured. Default: what cannot be measured is not judged. */
  unmeasured: z.optional(z.enum(["discarded", "discarded-each"])),
});
export type DriftBudgets = z.output<typeof driftBudgets>;

const tally = z.strictObject({ artifacts: count, streams: count, samples: count, tokens: count });
export type Tally = z.output<typeof tally>;
export const TALLIED = [
  "artifacts",
  "streams",
  "samples",
  "tokens",
] as const satisfies readonly (keyof Tally)[];

/** `stream` null: the entry covers the whole artifact with all its streams. */
const ledgerEntry = z.strictObject({
  content: digest,
  stream: z.nullable(count),
  reason: exclusionReason,
  samples: count,
  tokens: count,
  detail: z.optional(text()),
});
export type LedgerEntry = z.output<typeof ledgerEntry>;

export const LedgerPage = defineRecord({
  kind: "rollbook.ledger-page.v1",
  summary: "A page of exclusions, sorted by rollout and stream.",
  shape: { entries: z.array(ledgerEntry).min(1).max(100_000) },
  check({ entries }) {
    for (let i = 1; i < entries.length; i++) {
      const [before, here] = [entries[i - 1]!, entries[i]!];
      const follows =
        before.content < here.content ||
        (before.content === here.content && before.stream !== null && before.stream < (here.stream ?? 0));
      if (!follows)
        throw refuse(
          "bad-record",
          { field: `entries[${i}]` },
          `entries[${i}] is out of order, or excludes again what an entry before it excluded.`,
        );
    }
  },
});

export const LossLedger = defineRecord({
  kind: "rollbook.loss-ledger.v1",
  summary: "Everything that did not reach a batch, by reason; the counts add up exactly.",
  shape: {
    manifest: digest,
    considered: tally,
    batched: tally,
    excluded: tally,
    reasons: z.array(z.strictObject({ reason: exclusionReason, ...tally.shape })).max(64),
    pages: z.array(digest).max(100_000),
    /** The freshness budgets, present if they excluded something. */
    freshness: z.optional(driftBudgets),
  },
  references: (ledger) =>
    ledger.pages.map((page, i) => ({ digest: page, kind: LedgerPage.kind, field: `pages[${i}]` })),
  check(ledger) {
    for (const name of TALLIED) {
      const byReason = ledger.reasons.reduce((sum, each) => sum + each[name], 0);
      if (
        ledger.batched[name] + ledger.excluded[name] !== ledger.considered[name] ||
        byReason !== ledger.excluded[name]
      ) {
        throw refuse(
          "bad-record",
          { field: name },
          `the ledger does not add up for ${name}: ${ledger.batched[name]} batched + ${ledger.excluded[name]} excluded (${byReason} by reason), ${ledger.considered[name]} considered.`,
        );
      }
    }
  },
});
export type LossLedger = RecordOf<typeof LossLedger>;
