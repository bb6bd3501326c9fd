/** Outcomes that are added to a rollout while the gateway knows it. In: what is known of the rollout, and an outcome.
 *  Out: whether it is new, or a refusal; and its record. Pure. */
import type { Digest } from "../../../base/index.ts";
import { Feedback, type Sealed, seal } from "../../../contract/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import type { GradedEvent } from "./open-rollout.ts";

/** False if the very same outcome is there already. */
export function isNewGrade(
  id: string,
  grade: Omit<GradedEvent, "kind" | "atMs">,
  { grades, hasCall }: { grades: readonly GradedEvent[]; hasCall: (call: number) => boolean },
): boolean {
  if (grade.call !== undefined && !hasCall(grade.call))
    throw new HttpRefusal(404, "unknown-call", `rollout ${id} has no call ${grade.call}. Count from 0.`);
  const known = grades.find((each) => each.idempotencyKey === grade.idempotencyKey);
  if (known === undefined) return true;
  if (known.name === grade.name && known.value === grade.value && known.call === grade.call) return false;
  throw new HttpRefusal(
    409,
    "key-reused",
    `the idempotency key ${JSON.stringify(grade.idempotencyKey.slice(0, 80))} was used for another outcome. Use another key.`,
  );
}

/** None for a call that was begun and never recorded: a crash took it, and its grade has no subject. */
export function feedbackFor(
  { content, calls }: { readonly content: Digest; readonly calls: readonly number[] },
  { kind: _, call, ...rest }: GradedEvent,
): Sealed<Feedback>[] {
  const number = call === undefined ? -1 : calls.indexOf(call);
  if (call !== undefined && number < 0) return [];
  return [seal(Feedback, { subject: content, ...(call === undefined ? {} : { call: number }), ...rest })];
}
