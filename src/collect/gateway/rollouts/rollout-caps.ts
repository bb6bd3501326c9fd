/** Checks the caps of a rollout before a call. In: a rollout, the limits of the gateway. Out: a reservation for one
 *  more call, or a refusal. */
import { CAPS, type Cap } from "../../gateway-replies.ts";
import type { GatewayConfig } from "../config.ts";
import { HttpRefusal } from "../wire/index.ts";
import type { OpenRollout } from "./open-rollout.ts";

/** Maximum number of calls in the record of a rollout. */
const MOST_TURNS = 100_000;

/** Reserves the maximum cost of the next call, if there is a budget. Calls `mayCostUsd` only then. */
export function requireRoom(
  rollout: OpenRollout,
  { rolloutBytes }: Pick<GatewayConfig["limits"], "rolloutBytes">,
  mayCostUsd: () => number,
): void {
  const { id } = rollout;
  const { maxTurns = MOST_TURNS, budgetUsd } = rollout.opening;
  if (rollout.turns >= maxTurns || rollout.turns >= MOST_TURNS)
    throw capped(rollout, "turn-cap", `rollout ${id} has used its ${rollout.turns} turns.`);
  if (rollout.bytes >= rolloutBytes)
    throw capped(
      rollout,
      "size-cap",
      `the calls of rollout ${id} take ${rollout.bytes} bytes, and limits.rolloutBytes is ${rolloutBytes}. Close it.`,
    );
  if (budgetUsd === undefined) return;
  const { spentUsd, reservedUsd } = rollout;
  if (spentUsd >= budgetUsd)
    throw capped(rollout, "budget-cap", `rollout ${id} has spent its ${budgetUsd} USD.`);
  if (spentUsd + reservedUsd >= budgetUsd)
    throw refusal(
      "budget-reserved",
      `what is left of the ${budgetUsd} USD of rollout ${id} is reserved for calls in progress. Wait for one of them.`,
      { retry: true },
    );
  rollout.reserve(mayCostUsd());
}

/** No later call can pass this cap. Without an explicit ending, the rollout ends as truncated. */
function capped(rollout: OpenRollout, cap: Exclude<Cap, "budget-reserved">, message: string): HttpRefusal {
  rollout.capped ??= CAPS[cap].limit;
  return refusal(cap, message);
}

function refusal(cap: Cap, message: string, options?: { retry: boolean }): HttpRefusal {
  return new HttpRefusal(CAPS[cap].status, cap, message, options);
}
