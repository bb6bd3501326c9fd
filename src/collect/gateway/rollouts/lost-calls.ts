/** Finds calls that are missing because a journal segment was moved away. In: a rollout from the journal, and the
 *  facts that its calls hold about earlier calls. Out: the numbers of the missing calls; and the ending of a rollout
 *  with missing calls. Pure. Calls in progress at a crash are not missing: they were never recorded, and their
 *  replies were not sent. If other calls are missing, the two cases cannot be distinguished. */
import { type Ending, outsideBaseline } from "../../../contract/index.ts";
import type { OpenRollout } from "./open-rollout.ts";

/** `sent`: calls that a later call reports as delivered. `hasGap`: a call reports more earlier calls than the
 *  journal has. */
export function lostCalls(
  { calls, started }: Pick<OpenRollout, "calls" | "started">,
  { sent, hasGap }: { sent: ReadonlySet<number>; hasGap: boolean },
): number[] {
  const lost = new Set([...sent].filter((call) => !calls.has(call)));
  if (hasGap) for (let call = 0; call < started; call++) if (!calls.has(call)) lost.add(call);
  // No remaining call shows the number of the lost call, so the next number stands for it.
  if (hasGap && lost.size === 0) lost.add(started);
  return [...lost].sort((a, b) => a - b);
}

/** The ending of a rollout with missing calls. Such a rollout is no evidence about the policy, independent of the
 *  ending that its agent reported. */
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
