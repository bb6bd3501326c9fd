/** Defines the age limits of every command that judges freshness. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { given } from "../../base/index.ts";
import type { CutRequest } from "../../book/batches/index.ts";
import { wrongUsage } from "../../book/decisions/index.ts";
import { type Budget, FRESHNESS_PROFILES, type FreshnessBudgets } from "../../keep/admit/index.ts";
import { amount } from "./numbers.ts";

export interface FreshnessFlags {
  freshness?: keyof typeof FRESHNESS_PROFILES | "none";
  drift?: Budget;
  policyAge?: Budget;
  rolloutAge?: Budget;
  clockSkew?: number;
}

/** Heading of the age limits, and of the target that they need. */
export const FRESHNESS_GROUP = "Age limits:";

/** `none` is offered if there is a default to turn off. */
export function addFreshnessOptions(command: Command, { none = false } = {}): Command {
  const profiles = Object.keys(FRESHNESS_PROFILES);
  return command
    .optionsGroup(FRESHNESS_GROUP)
    .addOption(
      new Option(
        "--freshness <profile>",
        `preset limits: default (drift 3/5) or psionic, those of the trainer Psionic (also rollout age 30/60 s and clock skew 0 s)${none ? "; none: no limit" : ""} (default: ${none ? "drift 3/5 for tokens, none for steps" : "default"})`,
      ).choices(none ? [...profiles, "none"] : profiles),
    )
    .option(
      "--drift <accept/quarantine>",
      `limits on the number of revisions between the policy of a rollout and the target. Up to the first limit the rollout is accepted, up to the second it is quarantined, above it is rejected (default: ${none ? "see --freshness" : "3/5"})`,
      budget,
    )
    .option(
      "--policy-age <accept/quarantine>",
      "age of the policy of a rollout in seconds: creation time of the target minus that of the revision used; limits as for --drift. A rollout whose policy has no known age, such as one from an imported log, is rejected (default: no limit)",
      seconds,
    )
    .option(
      "--rollout-age <accept/quarantine>",
      `seconds from the end of a rollout to its upload; limits as for --drift (default: no limit; 30/60 with --freshness psionic)${none ? ". These verdicts are sealed, so later batches obey them too" : ""}`,
      seconds,
    )
    .option(
      "--clock-skew <s>",
      "tolerance for differing clocks: seconds by which the recorded end of a rollout may be later than its upload (default: 60; 0 with --freshness psionic)",
      amount,
    );
}

/** Splits the budgets for a batch. Drift and policy age follow from the records, so they are parameters of the batch.
 *  The age of a rollout depends on the time, so it is judged first and the verdicts are sealed. */
export function batchFreshness(flags: FreshnessFlags): Pick<CutRequest, "freshness" | "judge"> {
  if (flags.freshness === "none") return { freshness: "none" };
  const budgets = budgetsOf(flags);
  if (budgets === undefined) return {};
  const { drift, policyAgeMs, rolloutAgeMs, clockSkewMs } = budgets;
  if (rolloutAgeMs !== undefined || clockSkewMs !== undefined) return { judge: budgets };
  return {
    freshness: {
      ...given({ drift, policyAgeMs }),
      unmeasured: policyAgeMs === undefined ? "discarded" : "discarded-each",
    },
  };
}

/** Refuses limits that nothing is measured against. */
export function requireTarget(flags: FreshnessFlags & { target?: string }): void {
  if (flags.target !== undefined) return;
  const { freshness, drift, policyAge, rolloutAge, clockSkew } = flags;
  const idle = Object.entries({
    ...{ "--freshness": freshness, "--drift": drift, "--policy-age": policyAge },
    ...{ "--rollout-age": rolloutAge, "--clock-skew": clockSkew },
  }).find(([, value]) => value !== undefined);
  if (idle !== undefined)
    throw wrongUsage(`${idle[0]} has no effect without --target. Add --target, or remove ${idle[0]}`);
}

/** Undefined if no flag sets budgets. */
export function budgetsOf(flags: FreshnessFlags): FreshnessBudgets | undefined {
  const { freshness, drift, policyAge, rolloutAge, clockSkew } = flags;
  if (freshness === "none") return undefined;
  if ([freshness, drift, policyAge, rolloutAge, clockSkew].every((each) => each === undefined))
    return undefined;
  const skewMs = clockSkew === undefined ? undefined : clockSkew * 1000;
  return {
    ...FRESHNESS_PROFILES[freshness ?? "default"],
    ...given({ drift, policyAgeMs: policyAge, rolloutAgeMs: rolloutAge }),
    ...(skewMs === undefined ? {} : { clockSkewMs: { accept: skewMs, quarantine: skewMs } }),
  };
}

/** The flags as they were typed. */
export function freshnessWords(flags: FreshnessFlags): string[] {
  const { freshness, drift, policyAge, rolloutAge, clockSkew } = flags;
  const words = (name: string, value: string | number | undefined) =>
    value === undefined ? [] : [`--${name}`, `${value}`];
  const limits = (limit: Budget | undefined, unit = 1) =>
    limit && `${limit.accept / unit}/${limit.quarantine / unit}`;
  return [
    ...words("freshness", freshness),
    ...words("drift", limits(drift)),
    ...words("policy-age", limits(policyAge, 1000)),
    ...words("rollout-age", limits(rolloutAge, 1000)),
    ...words("clock-skew", clockSkew),
  ];
}

function budget(text: string): Budget {
  const [, accept, quarantine] = /^(\d+(?:\.\d+)?)\/(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (accept === undefined || Number(accept) > Number(quarantine))
    throw new InvalidArgumentError(
      "It must be two numbers, such as 3/5, and the second must not be smaller.",
    );
  return { accept: Number(accept), quarantine: Number(quarantine) };
}

function seconds(text: string): Budget {
  const { accept, quarantine } = budget(text);
  return { accept: accept * 1000, quarantine: quarantine * 1000 };
}
