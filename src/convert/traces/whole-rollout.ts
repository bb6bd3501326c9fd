/** Ensures that reading a trace gives the rollout from which it was made.
 *  A reader rebuilds a rollout from the fields of the trace and its extras. This loses fields that servers add to
 *  messages, forks, a second token stream and calls without a reply. If the digest would differ, the extras hold the
 *  whole rollout, and a digest of the trace's visible content. An edited trace is read from its visible content. */
import { type Digest, isRollbookError, type Json } from "../../base/index.ts";
import { parseRolloutDraft, sealRollout } from "../../contract/index.ts";
import type { HandedRollout, LossTally } from "../handover/index.ts";
import { rolloutOfTrace, shownOf, type TracedRollout } from "./rollout-of-trace.ts";
import type { TraceWhole } from "./trace-extras.ts";

/** Undefined if the trace alone is enough. A rollout with missing messages is counted as lost. */
export async function wholeFor(
  rollout: HandedRollout,
  traced: TracedRollout,
  losses: LossTally,
): Promise<TraceWhole | undefined> {
  if (contentDigestOf(rolloutOfTrace(traced)) === rollout.content) return undefined;
  try {
    return { shown: shownOf(traced), rollout: await rollout.whole() };
  } catch (error) {
    if (!isRollbookError(error, "missing-blob")) throw error;
    losses.add("messages that are gone from the book");
    return undefined;
  }
}

/** Undefined if the draft breaks a rule of records. */
function contentDigestOf(draft: { readonly [key: string]: Json }): Digest | undefined {
  try {
    return sealRollout(parseRolloutDraft(draft)).content.digest;
  } catch (error) {
    if (!isRollbookError(error)) throw error;
    return undefined;
  }
}
