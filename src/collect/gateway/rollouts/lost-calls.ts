/** What is missing from a journal of which somebody moved a segment away. In: a rollout as the journal tells it, and what
 *  its calls say of earlier ones. Out: the numbers of its calls that are not there any more; and how a rollout ends of
 *  which calls are missing. Pure. Calls that were in progress at a crash are not missing: they were never recorded, and
 *  their replies were not sent; but if others are missing, the two cannot be distinguished. */
import { type Ending, outsideBaseline } from "../../../contract/index.ts";
import type { OpenRollout } from "./open-rollout.ts";

/** `sent`: calls of which a later one says that they were delivered. `hasGap`: a call says that more had been recorded
 *  before it than are there. */
export function lostCalls(
  { calls, started }: Pick<OpenRollout, "calls" | "started">,
  { sent, hasGap }: { sent: ReadonlySet<number>; hasGap: boolean },
): number[] {
  const lost = new Set([...sent].filter((call) => !calls.has(call)));
  if (hasGap) for (let call = 0; call < started; call++) if (!calls.has(call)) lost.add(call);
  // A call that was lost completely had a number that no later call has.
  if (hasGap && lost.size === 0) lost.add(started);
  return [...lost].sort((a, b) => a - b);
}

/** A rollout of which calls are missing says nothing about the policy, whatever its agent says of it. */
export function endingOfDamaged(ending: Ending | undefined, lost: readonly number[]): Ending {
  if (ending !== undefined && outsideBaseline(ending) !== undefined) return ending;
  const told = ending === undefined ? "" : ` It was closed as ${ending.kind}.`;
  return {
    kind: "failed",
    owner: "infrastructure",
    message: `${callsText(lost)} missing: a part of the journal is gone.${told}`,
  };
}

export function callsText(calls: readonly number[]): string {
  const shown = calls.slice(0, 20).join(", ");
  const more = calls.length > 20 ? ` and ${calls.length - 20} more` : "";
  return calls.length === 1 ? `call ${shown} is` : `calls ${shown}${more} are`;
}
