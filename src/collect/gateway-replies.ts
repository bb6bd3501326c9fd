/** What a reply of a gateway says about the rollout that gets it. One table for the gateway, which sends it, and for the
 *  executor and the agents of this package, which read it; `python/rollbook/endings.py` has the same. Pure. */
import type { EndingLimit } from "../contract/index.ts";

/** Refusals of a rollout that has no room for the call, by their code. */
export const CAPS = {
  "turn-cap": { status: 429, limit: "turns" },
  "size-cap": { status: 429, limit: "budget" },
  "budget-cap": { status: 402, limit: "budget" },
  // The only one that passes by itself; an agent that does not wait for it has still met its budget.
  "budget-reserved": { status: 429, limit: "budget" },
} as const satisfies Readonly<Record<string, { status: number; limit: EndingLimit }>>;

export type Cap = keyof typeof CAPS;

/** A gateway that cannot record, cannot reach the gateway that owns the rollout, or has not read the router it names. */
const AWAY: readonly string[] = ["cannot-record", "owner-away", "router-not-ready"];

export interface RefusedReply {
  readonly status: number;
  /** The header `x-rollbook-refusal`. */
  readonly refusal: string | undefined;
  /** The body, where a proxy or an error of an SDK has dropped the headers. */
  readonly said: string;
}

/** The limit that a rollout has met; undefined for any other reply. */
export function limitOfReply({ status, refusal, said }: RefusedReply): EndingLimit | undefined {
  const cap = (Object.keys(CAPS) as Cap[]).find(
    (code) =>
      CAPS[code].status === status && (refusal === undefined ? said.includes(code) : refusal === code),
  );
  return cap === undefined ? undefined : CAPS[cap].limit;
}

/** By the header alone: any server that an agent asks may say these words. */
export function isGatewayAway({ status, refusal }: Pick<RefusedReply, "status" | "refusal">): boolean {
  return status === 503 && refusal !== undefined && AWAY.includes(refusal);
}

/** A status that another try, or another provider, may not have. */
export function isProviderFault(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}
