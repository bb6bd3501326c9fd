/** How a rollout ended, and who is to blame if it failed. Truncation is not termination. */
import * as z from "zod";
import { text } from "../codec/index.ts";

export const failureOwner = z.enum(["agent", "task", "provider", "sandbox", "infrastructure"]);
export type FailureOwner = z.output<typeof failureOwner>;

export const endingLimit = z.enum(["turns", "tokens", "time", "budget"]);
export type EndingLimit = z.output<typeof endingLimit>;

/** Who declared an ending as the result of a rollout, where a recorder cannot tell by itself: the executor that ran it, or
 *  the agent, by whose word alone another owner failed. Absent: the recorder, or a record older than this field. */
const declaredBy = z.optional(z.enum(["executor", "agent"]));

export const ending = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("terminal"), declaredBy }),
  z.strictObject({ kind: z.literal("truncated"), limit: endingLimit, declaredBy }),
  z.strictObject({ kind: z.literal("failed"), owner: failureOwner, message: text(), declaredBy }),
  z.strictObject({ kind: z.literal("cancelled"), declaredBy }),
]);
export type Ending = z.output<typeof ending>;

/** Why a rollout with this ending says nothing about the policy, or undefined if it does.
 *  An agent's own failure is a result; a provider's, a sandbox's or ours is not. */
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
