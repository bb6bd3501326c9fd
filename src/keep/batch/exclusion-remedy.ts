/** Suggests how to admit streams that a ledger lists as excluded. In: the ledger, the request for the batch. Out: one
 *  sentence. */
import type { BatchOptions, ExclusionReason, Level } from "../../contract/index.ts";
import type { Admitted } from "../admit/index.ts";

/** Without a full stop, because some messages continue. */
export const RECORD_TOKENS =
  "A gateway records tokens if `capture` and `logprobKind` of a model in gateway.yaml ask for them (docs/gateway.md, Tokens)";

export const NO_PROPENSITY_REMEDY =
  "Their decisions log no probability of the choice: import it with --map propensity=COLUMN, or record calls through the gateway, which logs it.";

export const UNLABELLED_REMEDY =
  "They have no reward: name late feedback with --feedback, or record rewards.";

/** The distance to the newest revision that made them is 0, so it is always known. */
const JUDGE_AGAIN =
  "Judge them again: `rollbook artifact admit --target REVISION`. REVISION is the newest revision that made them (`logged` for an imported log).";

interface RemedyFacts {
  readonly level: Level;
  readonly propensity: BatchOptions["propensity"];
  /** The command itself has sealed the verdicts. */
  readonly judged?: boolean | undefined;
}

/** Reasons by number of streams, most first. Another family comes last, because a batch is for one family. */
export function reasonsOf(ledger: Admitted["ledger"]): ExclusionReason[] {
  const isOther = ({ reason }: { reason: ExclusionReason }) => Number(reason === "other-family");
  return [...ledger.reasons()]
    .sort((a, b) => isOther(a) - isOther(b) || b.streams - a.streams)
    .map(({ reason }) => reason);
}

/** Remedy for `no-group` if it occurs, else for the most frequent reason that has one. */
export function remedyOf(ledger: Admitted["ledger"], facts: RemedyFacts): string {
  const reasons = reasonsOf(ledger);
  if (reasons.length === 0) return " Record rollouts, or change the options that select them.";
  if (reasons.includes("no-group")) return ` ${remedyFor("no-group", { ...facts, budgeted: false })}`;
  const budgeted = ledger.freshness !== undefined;
  for (const reason of reasons) {
    const remedy = remedyFor(reason, { ...facts, budgeted });
    if (remedy !== undefined) return ` ${remedy}`;
  }
  return " No option lets them in. Correct the cause, and record more rollouts.";
}

const BY_VERDICT = ["stale", "quarantined", "rejected", "unobserved"] as const;

/** Remedies for the rollouts that verdicts or age limits exclude. */
export function verdictRemedies(ledger: Admitted["ledger"], facts: RemedyFacts): string[] {
  const found = new Set(reasonsOf(ledger));
  const budgeted = ledger.freshness !== undefined;
  return BY_VERDICT.filter((reason) => found.has(reason)).map(
    (reason) => remedyFor(reason, { ...facts, budgeted })!,
  );
}

/** `budgeted`: a limit of this batch excluded them, not a verdict of the book. Undefined: no option admits such
 *  streams. */
function remedyFor(
  reason: ExclusionReason,
  { level, propensity, judged, budgeted }: RemedyFacts & { readonly budgeted: boolean },
): string | undefined {
  switch (reason) {
    case "no-group":
      return "Advantages are measured against a group: name one when a rollout is opened, or use --advantage none.";
    case "other-level":
      return level === "step"
        ? "They hold tokens: use --level token."
        : `They hold decisions and no tokens: use --level step. ${RECORD_TOKENS}.`;
    case "other-family":
      return "They are of another policy family: name a --target of that family.";
    case "other-logprob-kind":
      return "Their log-probabilities are of the other kind: name it with --logprob-kind.";
    case "other-tokenizer":
      return "They are of another tokenizer: name it with --tokenizer, or leave the option out.";
    case "unlabelled":
      return UNLABELLED_REMEDY;
    case "no-propensity":
      return propensity === "choice"
        ? NO_PROPENSITY_REMEDY
        : "Their decisions do not log the probabilities of all candidates: use --propensity choice if they log that of the choice.";
    case "too-long":
      return "They are too long: raise --max-length.";
    case "no-verdict":
      return "No validator has accepted them. Judge them with `rollbook artifact admit --validate`, or omit --require-verdict.";
    case "stale":
    case "quarantined":
      if (judged === true)
        return `Limits of this command excluded them, and these verdicts are sealed. ${JUDGE_AGAIN} Then assemble without --rollout-age, --clock-skew and --freshness psionic.`;
      return budgeted
        ? "They are too far behind the target, or their distance or age is unknown: raise the limits, or use --freshness none, which takes them all."
        : `Verdicts of the book exclude them. ${reason === "stale" ? JUDGE_AGAIN : "`rollbook artifact show ROLLOUT` lists the verdicts, `rollbook artifact release` overrides them."}`;
    case "unobserved":
      return "A verdict says that they hold no choice by the policy family that it judged: judge them again with `rollbook artifact admit` and a --target of their family.";
    case "rejected":
      return "A validator rejected them: `rollbook artifact show ROLLOUT` says why. If only the proof is missing, as in an imported log, `rollbook artifact admit --validate --no-proof` judges them again without it.";
    case "failed-task":
    case "failed-provider":
    case "failed-sandbox":
    case "failed-infrastructure":
    case "cancelled":
    case "task-quarantined":
    case "not-accepted":
    case "replay-required":
    case "zero-weight":
    case "held-out":
    case "already-batched":
    case "duplicate-rollout":
      return undefined;
    default:
      return reason satisfies never;
  }
}
