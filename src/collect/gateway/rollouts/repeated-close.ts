/** Refuses a repeated close with other results than the sealed ones: the client would believe that they count.
 *  In: the request, the sealed content. A result that the request leaves out is not compared. Pure. */
import { canonicalize } from "../../../base/index.ts";
import { type RolloutContent, sealFinalState } from "../../../contract/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import type { CloseRequest } from "./close-coordinator.ts";

export function requireSameClosing(
  id: string,
  { scores, finalState }: CloseRequest,
  sealed: Pick<RolloutContent, "scores" | "finalState">,
): void {
  if (scores !== undefined && canonicalize(scores) !== canonicalize(sealed.scores))
    throw otherClosing(
      sealed.scores.length === 0
        ? `rollout ${id} is closed without scores. Add an outcome with POST /v1/feedback.`
        : `rollout ${id} is closed with other scores (${scoresText(sealed.scores)}), which count. To record other scores, open a new rollout.`,
    );
  if (finalState !== undefined && sealFinalState(finalState).digest !== sealed.finalState)
    throw otherClosing(
      `rollout ${id} is closed ${sealed.finalState === undefined ? "without a final state" : "with another final state, which counts"}. To record another one, open a new rollout.`,
    );
}

function otherClosing(message: string): HttpRefusal {
  return new HttpRefusal(409, "other-closing", message);
}

const MOST_SHOWN = 5;

function scoresText(scores: RolloutContent["scores"]): string {
  const shown = scores.slice(0, MOST_SHOWN).map(({ name, value }) => `${name} ${value}`);
  const more = scores.length > MOST_SHOWN ? [`${scores.length - MOST_SHOWN} more`] : [];
  return [...shown, ...more].join(", ");
}
