/** The ending of a rollout, and the owner of a failure. Truncation is not termination. */
import * as z from "zod";
import { text } from "../codec/index.ts";

export const failureOwner = z.enum(["agent", "task", "provider", "sandbox", "infrastructure"]);
export type FailureOwner = z.output<typeof failureOwner>;

export const endingLimit = z.enum(["turns", "tokens", "time", "budget"]);
export type EndingLimit = z.output<typeof endingLimit>;

/** Source of an ending that the recorder cannot observe. `executor`: the executor that ran the rollout. `agent`: the
 *  agent, which is then the only source for a failure of another owner. Absent: the recorder, or a record older than
 *  this field. */
const declaredBy = z.optional(z.enum(["executor", "agent"]));

export const ending = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("terminal"), declaredBy }),
  z.strictObject({ kind: z.literal("truncated"), limit: endingLimit, declaredBy }),
  z.strictObject({ kind: z.literal("failed"), owner: failureOwner, message: text(), declaredBy }),
  z.strictObject({ kind: z.literal("cancelled"), declaredBy }),
]);
export type Ending = z.output<typeof ending>;

/** Reason why a rollout with this ending is no evidence about the policy, or undefined if it is evidence. An agent's
 *  own failure is a result; a failure of provider, sandbox, task or infrastructure is not. */
export function outsideBaseline(
  end: Ending,
): `failed-${Exclude<FailureOwner, "agent">}` | "cancelled" | undefined {
  switch (end.kind) {
    case "terminal":
    case "truncated":
      return undefined;
    case "cancelled":
      return "cancelled";
    case "failed":
      return end.owner === "agent" ? undefined : `failed-${end.owner}`;
    default:
      return end satisfies never;
  }
}
