/** Decides if a log supports an estimate. In: diagnostics, limits. Out: every fault, and its explanation with a remedy.
 *  Without a fault, an estimate may be made. */
import { nearestName, percent, plural } from "../../base/index.ts";
import type { SplitUnit } from "../../contract/index.ts";
import type { Diagnostics } from "./diagnostics.ts";
import { enoughToJudge, smallLogRemedy } from "./log-size.ts";
import type { RareChoices } from "./rare-choices.ts";

export interface SupportLimits {
  readonly effectiveSize: number;
  readonly largestShare: number;
  readonly unsupportedMass: number;
  readonly meanWeightZ: number;
}

/** Conventions: enough units for a normal approximation; no unit that decides alone; at most a hundredth of the target
 *  unseen; and a mean weight that chance explains in 1 case of 10 000. */
export const SUPPORT_LIMITS: SupportLimits = {
  effectiveSize: 50,
  largestShare: 0.1,
  unsupportedMass: 0.01,
  meanWeightZ: 3.9,
};

export type SupportFault =
  | {
      readonly kind: "thin-support";
      readonly effectiveSize: number;
      readonly units: number;
      readonly needed: number;
      /** Number of such units that would suffice; null if no unit carries weight. */
      readonly enough: number | null;
    }
  | {
      readonly kind: "dominant-weight";
      readonly largestWeight: number;
      readonly share: number;
      readonly allowed: number;
    }
  | {
      readonly kind: "unsupported-actions";
      readonly basis: Diagnostics["unsupported"]["basis"];
      readonly actions: readonly number[];
      /** Number of rows with such probability, and of all rows. */
      readonly rows: number;
      readonly of: number;
      readonly mass: number;
      readonly allowed: number;
    }
  | { readonly kind: "constant-reward"; readonly reward: number; readonly rows: number }
  | {
      readonly kind: "mean-weight";
      readonly meanWeight: number;
      readonly z: number;
      readonly allowed: number;
    };

export function supportFaults(facts: Diagnostics, limits: SupportLimits = SUPPORT_LIMITS): SupportFault[] {
  const faults: SupportFault[] = [];
  const { effectiveSize, units, largestWeight, largestShare, unsupported, meanWeight, meanWeightZ } = facts;
  if (!(effectiveSize >= limits.effectiveSize))
    faults.push(thinSupport({ effectiveSize, units, needed: limits.effectiveSize }));
  if (!(largestShare <= limits.largestShare))
    faults.push({
      kind: "dominant-weight",
      largestWeight,
      share: largestShare,
      allowed: limits.largestShare,
    });
  if (!(unsupported.mass <= limits.unsupportedMass)) {
    const allowed = limits.unsupportedMass;
    faults.push({ kind: "unsupported-actions", ...unsupported, of: facts.rows, allowed });
  }
  // The standard error of a few units does not measure chance. The small number of units is a separate fault.
  if (units >= limits.effectiveSize && !(Math.abs(meanWeightZ) <= limits.meanWeightZ))
    faults.push({ kind: "mean-weight", meanWeight, z: meanWeightZ, allowed: limits.meanWeightZ });
  if (facts.constantReward !== undefined)
    faults.push({ kind: "constant-reward", reward: facts.constantReward, rows: facts.rows });
  return faults;
}

function thinSupport(facts: { effectiveSize: number; units: number; needed: number }): SupportFault {
  const { effectiveSize, units, needed } = facts;
  const enough = effectiveSize > 0 ? Math.ceil((units * needed) / effectiveSize) : null;
  return { kind: "thin-support", ...facts, enough };
}

/** True if the log is too small for an estimate, so that more rows of the same kind would suffice. */
function isSmallLog(fault: SupportFault, judgeShare?: number): boolean {
  if (fault.kind !== "thin-support") return false;
  return fault.units < fault.needed || (fault.enough !== null && fault.enough <= enoughToJudge(judgeShare));
}

/** The explanations of all faults, without faults that follow from another fault. In a small log, one unit holds much
 *  of the weight because of the size alone.
 *  If the log rarely has the policy's choices, all figures of its weights are bad. */
export function explainFaults(faults: readonly SupportFault[], about: FaultContext = {}): string[] {
  if (about.rare !== undefined && faults.some(({ kind }) => kind !== "constant-reward")) {
    const others = faults.filter(({ kind }) => kind === "constant-reward");
    return [explainRare(about.rare, about), ...others.map((fault) => explainFault(fault, about))];
  }
  const isSmall = faults.some((fault) => isSmallLog(fault, about.judgeShare));
  const told = isSmall ? faults.filter(({ kind }) => kind !== "dominant-weight") : faults;
  return told.map((fault) => explainFault(fault, about));
}

function explainRare({ actions, share, rows }: RareChoices, { names, wholeLog }: FaultContext): string {
  const has =
    rows === 0
      ? "no row that judges has"
      : `only ${plural(rows, "row")} that judge${rows === 1 ? "s has" : " have"}`;
  const [isOne, listed] = [actions.length === 1, list(actions, names)];
  const logged = actions.reduce((sum, action) => sum + (wholeLog?.chosen.get(names?.[action] ?? "") ?? 0), 0);
  const known = names?.filter((_, action) => !actions.includes(action)) ?? [];
  const meant = isOne ? nearestName(listed, known) : undefined;
  return [
    `${listed} ${isOne ? "gets" : "get"} ${percent(share)} of the choices, and ${has} ${isOne ? "this choice" : "one of them"}.`,
    ...(wholeLog === undefined
      ? []
      : [`${listed} ${isOne ? "occurs" : "occur"} in ${logged} of ${plural(wholeLog.rows, "row")}.`]),
    meant === undefined
      ? `Record more choices of ${isOne ? "it" : "them"}, with their probability.`
      : `If it means ${meant}, correct the name in the log; else record more choices of it.`,
  ].join(" ");
}

/** Rounded down: 49.97 is less than the 50 that an estimate needs. */
function below(size: number): string {
  return (Math.floor(size * 10) / 10).toFixed(1);
}

interface FaultContext {
  /** Names of the candidates, if they have names. */
  readonly names?: readonly string[];
  /** The share of the log that judges (default: that of the default split without a calibrated floor). */
  readonly judgeShare?: number | undefined;
  /** Kind of unit (default: a task). */
  readonly unit?: SplitUnit | undefined;
  /** Number of judging rows, if known. */
  readonly rows?: number | undefined;
  readonly rare?: RareChoices | undefined;
  readonly wholeLog?: LoggedChoices | undefined;
}

/** Number of choices of each candidate in a log, including rows that do not judge. */
export interface LoggedChoices {
  readonly rows: number;
  readonly chosen: ReadonlyMap<string, number>;
}

function thinText(
  fault: SupportFault & { readonly kind: "thin-support" },
  { judgeShare, unit, rows }: FaultContext,
): string {
  const { units, needed, enough } = fault;
  const log = { judgeShare, unit, counted: rows === undefined ? undefined : { rows, units } };
  const judging = plural(units, unit ?? "task");
  return isSmallLog(fault, judgeShare)
    ? `the log is too small. It has ${judging} left to judge by, with an effective sample size below ${needed}. ${smallLogRemedy({ ...log, judging: judgeShare === 1 ? enough : null })}.`
    : `effective sample size ${below(fault.effectiveSize)} of ${judging}, ${needed} needed: few rows carry most of the weight. ${smallLogRemedy({ ...log, judging: enough })}. Or explore more, or judge a policy closer to the logging one.`;
}

function explainFault(fault: SupportFault, about: FaultContext = {}): string {
  const { names, unit = "task" } = about;
  switch (fault.kind) {
    case "thin-support":
      return thinText(fault, about);
    case "dominant-weight":
      return `one ${unit} holds ${percent(fault.share)} of all weight, at most ${percent(fault.allowed)} allowed: the estimate would be the reward of that ${unit}. The largest weight of a row is ${fault.largestWeight.toPrecision(4)}, the policy's probability of its choice divided by the logged one. Record with more exploration: then logged probabilities are larger, and weights smaller.`;
    case "unsupported-actions":
      return unsupportedText(fault, names);
    case "mean-weight":
      return `weights average ${fault.meanWeight.toFixed(4)} instead of 1 (z = ${fault.z.toFixed(1)}, at most ${fault.allowed}): the logged probabilities are wrong, or the log rarely has the policy's choices. Check that the logged probability is that of the final choice; if it is, record with more exploration.`;
    case "constant-reward":
      return `the outcome is always ${fault.reward} (${fault.rows} rows): a log without variation cannot show how often another outcome occurs. Log more, or state the range of outcomes with --quality-range LOW..HIGH.`;
    default:
      return fault satisfies never;
  }
}

function unsupportedText(
  fault: SupportFault & { readonly kind: "unsupported-actions" },
  names?: readonly string[],
): string {
  const { basis, actions, rows, of, mass, allowed } = fault;
  const limit = `at most ${percent(allowed)} allowed`;
  if (basis !== "distribution")
    return `it puts ${percent(mass)} of its probability on candidates that the log never chose (${list(actions, names)}), ${limit}. Record choices of them, with their probability.`;
  const remedy =
    rows < of
      ? "Leave such rows out, for example with --exp, or record them with exploration"
      : "Record with exploration";
  return `in ${rows} of ${plural(of, "row")}, it puts probability on candidates that the old policy could not choose (${list(actions, names)}): ${percent(mass)} of the whole, ${limit}. ${remedy}.`;
}

function list(actions: readonly number[], names?: readonly string[]): string {
  const shown = actions.slice(0, 8).map((action) => names?.[action] ?? String(action));
  return actions.length <= 8 ? shown.join(", ") : `${shown.join(", ")} and ${actions.length - 8} more`;
}
