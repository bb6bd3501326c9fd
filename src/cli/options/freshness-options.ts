/** The flags that say how old is too old, for every command that judges freshness. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { PolicyRevision } from "../../contract/index.ts";
import {
  type Budget,
  FRESHNESS_PROFILES,
  type FreshnessBudgets,
  makeAdmission,
} from "../../keep/admit/index.ts";
import type { Book } from "../../store/index.ts";
import { readRecord } from "../../store/read-record.ts";
import { revisionsOf } from "../../book/admit.ts";
import { withIndex } from "../../book/find/book-index.ts";
import { resolveRevision } from "../../book/find/resolve.ts";

export interface FreshnessFlags {
  freshness?: keyof typeof FRESHNESS_PROFILES;
  drift?: Budget;
  policyAge?: Budget;
  rolloutAge?: Budget;
  clockSkew?: number;
}

export function addFreshnessOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--freshness <profile>",
        "budgets: default (drift 3/5) or psionic (and age 30/60 s)",
      ).choices(Object.keys(FRESHNESS_PROFILES)),
    )
    .option("--drift <accept/quarantine>", "revisions behind the target", budget)
    .option("--policy-age <accept/quarantine>", "seconds between source revision and target", seconds)
    .option("--rollout-age <accept/quarantine>", "seconds between end and submission", seconds)
    .option("--clock-skew <s>", "seconds that clocks may disagree by (default: 60)", amount);
}

/** Undefined if no flag asks for freshness. */
export function budgetsOf(flags: FreshnessFlags): FreshnessBudgets | undefined {
  const { freshness, drift, policyAge, rolloutAge, clockSkew } = flags;
  if ([freshness, drift, policyAge, rolloutAge, clockSkew].every((each) => each === undefined))
    return undefined;
  const skewMs = clockSkew === undefined ? undefined : clockSkew * 1000;
  return {
    ...FRESHNESS_PROFILES[freshness ?? "default"],
    ...(drift === undefined ? {} : { drift }),
    ...(policyAge === undefined ? {} : { policyAgeMs: policyAge }),
    ...(rolloutAge === undefined ? {} : { rolloutAgeMs: rolloutAge }),
    ...(skewMs === undefined ? {} : { clockSkewMs: { accept: skewMs, quarantine: skewMs } }),
  };
}

/** The judge of what is submitted: none unless a target is named. */
export async function admissionFrom(
  flags: FreshnessFlags & { target?: string },
  book: Book,
): Promise<{ admit?: ReturnType<typeof makeAdmission> }> {
  const { target: name } = flags;
  if (name === undefined) return {};
  return withIndex(book, async (index) => {
    const target = await readRecord(book, PolicyRevision, resolveRevision(index, name).digest);
    const revisions = await revisionsOf(book, index);
    return {
      admit: makeAdmission({
        target: () => target,
        revision: ({ id }) => revisions(target.family, id),
        budgets: budgetsOf(flags) ?? FRESHNESS_PROFILES.default,
      }),
    };
  });
}

function budget(text: string): Budget {
  const [, accept, quarantine] = /^(\d+(?:\.\d+)?)\/(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (accept === undefined || Number(accept) > Number(quarantine))
    throw new InvalidArgumentError("It must be two numbers, such as 3/5, the second not the smaller.");
  return { accept: Number(accept), quarantine: Number(quarantine) };
}

function seconds(text: string): Budget {
  const { accept, quarantine } = budget(text);
  return { accept: accept * 1000, quarantine: quarantine * 1000 };
}

function amount(text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new InvalidArgumentError("It must be a number, such as 2.5.");
  return Number(text);
}
