/** Meaning of a gateway's reply for the rollout that receives it. In: status, refusal code, body. Out: the limit
 *  reached, or the owner of the fault. The gateway sends by this table; the executor and the agents of this package
 *  read by it. `python/rollbook/endings.py` has the same table. Pure. */
import type { EndingLimit } from "../contract/index.ts";

/** Refusals of a call that exceeds a cap of its rollout, by code. */
export const CAPS = {
  "turn-cap": { status: 429, limit: "turns" },
  "size-cap": { status: 429, limit: "budget" },
  "budget-cap": { status: 402, limit: "budget" },
  // The only cap that passes by itself. An agent that does not wait for it ends at its budget limit.
  "budget-reserved": { status: 429, limit: "budget" },
} as const satisfies Readonly<Record<string, { status: number; limit: EndingLimit }>>;

export type Cap = keyof typeof CAPS;

/** Codes of a gateway that cannot record, cannot reach the rollout's owner, or has not read the named router yet. */
const AWAY: readonly string[] = ["cannot-record", "owner-away", "router-not-ready"];

export interface RefusedReply {
  readonly status: number;
  /** Value of the header `x-rollbook-refusal`. */
  readonly refusal: string | undefined;
  /** The body of the reply. A proxy or an SDK error may have dropped the headers. */
  readonly said: string;
}

/** The limit that the rollout has reached. Undefined for any other reply. */
export function limitOfReply({ status, refusal, said }: RefusedReply): EndingLimit | undefined {
  const cap = (Object.keys(CAPS) as Cap[]).find(
    (code) =>
      CAPS[code].status === status && (refusal === undefined ? said.includes(code) : refusal === code),
  );
  return cap === undefined ? undefined : CAPS[cap].limit;
}

/** Checks the header only: any server that an agent calls may have these words in its body. */
export function isGatewayAway({ status, refusal }: Pick<RefusedReply, "status" | "refusal">): boolean {
  return status === 503 && refusal !== undefined && AWAY.includes(refusal);
}

/** True for a status that a retry or another provider may avoid. */
export function isProviderFault(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}
