/** What is missing from a journal of which somebody moved a segment away. In: a rollout as the journal tells it, and the
 *  segments that are there. Out: the numbers of its calls that were recorded once and are not any more; and how a rollout
 *  ends of which calls are missing. Pure. Calls that were in progress at a crash are not missing: they were never recorded,
 *  and nobody got their replies. */
import { type Ending, outsideBaseline } from "../../contract/index.ts";
import type { OpenRollout } from "./open-rollout.ts";

/** Nothing that an open rollout has in the journal is ever removed by the gateway. So a call is missing if a later one
 *  says that it was delivered; or if its number lies between two calls, and a segment between theirs is not there. */
export function lostCalls(
  rollout: Pick<OpenRollout, "calls" | "events">,
  { sent, segments }: { sent: ReadonlySet<number>; segments: ReadonlySet<number> },
): number[] {
  const lost = new Set([...sent].filter((call) => !rollout.calls.has(call)));
  let next = 0;
  let segment = rollout.events[0]!.segment;
  // In the order of the journal.
  for (const [index, place] of rollout.calls) {
    if (index > next && isGap(segment, place.segment, segments))
      for (let call = next; call < index; call++) if (!rollout.calls.has(call)) lost.add(call);
    next = Math.max(next, index + 1);
    segment = place.segment;
  }
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

function isGap(from: number, to: number, segments: ReadonlySet<number>): boolean {
  for (let segment = from + 1; segment < to; segment++) if (!segments.has(segment)) return true;
  return false;
}
