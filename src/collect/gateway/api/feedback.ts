/** POST /v1/feedback: an outcome for a rollout or one of its calls, at any time. In: the body. Out: what was added.
 *  Before the rollout is sealed the outcome waits in its journal; afterwards it is a record of its own. No outcome is
 *  ever made up: a rollout without one stays unlabelled. */
import type { RedactOptions } from "../redact/index.ts";
import type { Rollouts } from "../rollouts/index.ts";
import { redactFeedback } from "./redact-requests.ts";
import { check, feedbackRequest, splitCall } from "./requests.ts";

export async function addFeedback(
  rollouts: Rollouts,
  body: unknown,
  redact: RedactOptions,
): Promise<{ added: boolean }> {
  const { call, rollout, ...grade } = redactFeedback(check(feedbackRequest, body), redact);
  if (call === undefined) return rollouts.grade(rollout!, grade);
  const named = splitCall(call);
  return rollouts.grade(named.rollout, { ...grade, call: named.call });
}
