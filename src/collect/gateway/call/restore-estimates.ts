/** Restores the estimated costs that an earlier run charged to the budgets of open rollouts. Estimates are not
 *  recorded. In: open rollouts, the journal, the prices. Out: the estimates. Writes nothing. */
import type { GatewayConfig } from "../config.ts";
import { dialectNamed } from "../dialects/index.ts";
import { type CalledEntry, type JournalReader, replyOf } from "../journal/index.ts";
import type { OpenRollout } from "../rollouts/index.ts";
import type { Routes } from "../upstream/index.ts";
import { estimateUsd } from "./prices.ts";

/** Estimates again the cost of earlier calls that have no recorded cost. */
export function estimateAgain(
  rollouts: readonly OpenRollout[],
  { journal, routes, limits }: { journal: JournalReader; routes: Routes; limits: GatewayConfig["limits"] },
): void {
  for (const rollout of rollouts) {
    if (rollout.opening.budgetUsd === undefined) continue;
    for (const place of rollout.unpriced) {
      const entry = journal.called(place);
      const price = routes.priceOf(entry.target);
      if (price === undefined || isFree(entry)) continue;
      const bytes = { asked: entry.request.length, said: replyBytes(entry, limits) };
      rollout.estimatedUsd += estimateUsd(bytes, price);
    }
  }
}

/** True for a call that an error answered. A client that left early still made the upstream work. */
function isFree({ status, outcome }: CalledEntry): boolean {
  return status >= 400 && outcome !== "disconnected";
}

/** Bytes of the messages, without their encoding. A reply beyond the limit was not stored, so it counts with the
 *  limit. */
function replyBytes(entry: CalledEntry, { responseBytes }: GatewayConfig["limits"]): number {
  if (entry.replyForm === "none") return entry.replyDigest === undefined ? 0 : responseBytes;
  const { reply } = replyOf(entry, dialectNamed(entry.dialect));
  return Buffer.byteLength(JSON.stringify(reply.messages));
}
