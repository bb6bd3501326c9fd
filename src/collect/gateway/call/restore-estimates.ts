/** What the calls of an earlier run have taken from the budgets of rollouts that go on. In: open rollouts, the journal, the
 *  prices. Out: their estimates again, which are recorded nowhere. Writes nothing. */
import type { GatewayConfig } from "../config.ts";
import { dialectNamed } from "../dialects/index.ts";
import { type CalledEntry, type JournalReader, replyOf } from "../journal/index.ts";
import type { OpenRollout } from "../rollouts/index.ts";
import type { Routes } from "../upstream/index.ts";
import { estimateUsd } from "./prices.ts";

/** Estimates again what the calls of an earlier run cost that say nothing of it. */
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

/** Answered by an error. Who left before the answer was whole has had the upstream work all the same. */
function isFree({ status, outcome }: CalledEntry): boolean {
  return status >= 400 && outcome !== "disconnected";
}

/** Of what was said, without the form in which it came. A reply beyond the limit is not kept: it had that length. */
function replyBytes(entry: CalledEntry, { responseBytes }: GatewayConfig["limits"]): number {
  if (entry.replyForm === "none") return entry.replyDigest === undefined ? 0 : responseBytes;
  const { reply } = replyOf(entry, dialectNamed(entry.dialect));
  return Buffer.byteLength(JSON.stringify(reply.messages));
}
