/** What calls cost before anybody says so: reserved while they are in progress, and estimated where the upstream does not
 *  tell their usage. In: sizes, prices, and what a request asks for. Out: dollars, for budgets only: recorded nowhere.
 *  Looks into the journal for the calls of earlier runs; writes nothing. */
import type { GatewayConfig, ModelConfig } from "./config.ts";
import type { RequestFacts } from "./dialects/dialect.ts";
import { dialectNamed } from "./dialects/index.ts";
import type { CalledEntry } from "./journal-call.ts";
import type { JournalReader } from "./journal-reader.ts";
import type { OpenRollout } from "./open-rollout.ts";
import { replyOf } from "./recorder.ts";
import type { Routes } from "./routes.ts";

/** Of English text in the usual vocabularies, roughly. */
const BYTES_PER_TOKEN = 4;
/** Taken for the length of a reply where the request sets no limit. */
const DEFAULT_REPLY_TOKENS = 1024;
const LIMITS = ["max_completion_tokens", "max_tokens", "max_output_tokens"];

type Price = NonNullable<ModelConfig["price"]>;

/** What a call that begins may cost: its body as tokens, and as long a reply as it asks for, in each of its choices. */
export function reservationUsd(
  { parameters }: RequestFacts,
  { bodyBytes, price }: { bodyBytes: number; price: Price | undefined },
): number {
  if (price === undefined) return 0;
  const asked = LIMITS.map((name) => parameters[name]).find(isCount) ?? DEFAULT_REPLY_TOKENS;
  const choices = isCount(parameters.n) ? parameters.n : 1;
  return (tokens(bodyBytes) * price.prompt + asked * choices * price.completion) / 1e6;
}

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
      if (price === undefined || entry.status >= 400) continue;
      const said = replyBytes(entry, limits);
      rollout.estimatedUsd +=
        (tokens(entry.request.length) * price.prompt + tokens(said) * price.completion) / 1e6;
    }
  }
}

/** Of what was said, without the form in which it came. A reply beyond the limit is not kept: it had that length. */
function replyBytes(entry: CalledEntry, { responseBytes }: GatewayConfig["limits"]): number {
  if (entry.replyForm === "none") return entry.replyDigest === undefined ? 0 : responseBytes;
  const { reply } = replyOf(entry, dialectNamed(entry.dialect));
  return Buffer.byteLength(JSON.stringify(reply.messages));
}

function tokens(bytes: number): number {
  return bytes / BYTES_PER_TOKEN;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}
