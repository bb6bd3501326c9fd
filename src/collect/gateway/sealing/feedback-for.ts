/** Makes the record of feedback that came while its rollout was open. In: the sealed rollout, the event. Out: the
 *  record. Pure. */
import type { Digest } from "../../../base/index.ts";
import { Feedback, type Sealed, seal } from "../../../contract/index.ts";
import type { FeedbackEvent } from "../journal/index.ts";

/** Empty for a call that a crash ended before it was recorded: its feedback has no subject. */
export function feedbackFor(
  { content, calls }: { readonly content: Digest; readonly calls: readonly number[] },
  { kind: _, call, ...rest }: FeedbackEvent,
): Sealed<Feedback>[] {
  const number = call === undefined ? -1 : calls.indexOf(call);
  if (call !== undefined && number < 0) return [];
  return [seal(Feedback, { subject: content, ...(call === undefined ? {} : { call: number }), ...rest })];
}
