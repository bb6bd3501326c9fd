/** Costs of calls: from the usage that the upstream reports, estimated from sizes without usage, and reserved before
 *  a call. In: usage or bytes, and a price. Out: US dollars. Only costs from usage are recorded. Pure. */
import type { ModelConfig } from "../config.ts";
import type { RequestFacts, TokenUsage } from "../dialects/index.ts";
import { BYTES_PER_TOKEN } from "../upstream/index.ts";

type Price = NonNullable<ModelConfig["price"]>;

/** Assumed length of a reply if the request sets no limit. */
const DEFAULT_REPLY_TOKENS = 1024;
/** Prices are per this many tokens. */
const PER_TOKENS = 1e6;

export function costUsd(usage: TokenUsage, price: Price): number {
  const cached = Math.min(usage.cachedTokens ?? 0, usage.promptTokens);
  const prompt = (usage.promptTokens - cached) * price.prompt + cached * (price.cached ?? price.prompt);
  return (prompt + usage.completionTokens * price.completion) / PER_TOKENS;
}

/** Cost of an answer without usage. OpenAI streams report usage only if the client asks. */
export function estimateUsd(bytes: { readonly asked: number; readonly said: number }, price: Price): number {
  return (tokens(bytes.asked) * price.prompt + tokens(bytes.said) * price.completion) / PER_TOKENS;
}

/** Maximum cost of a starting call: its body as tokens, plus the requested reply length for each of its choices. */
export function reservationUsd(
  { parameters, maxTokens = DEFAULT_REPLY_TOKENS }: RequestFacts,
  { bodyBytes, price }: { bodyBytes: number; price: Price | undefined },
): number {
  if (price === undefined) return 0;
  const choices = isCount(parameters.n) ? parameters.n : 1;
  return (tokens(bodyBytes) * price.prompt + maxTokens * choices * price.completion) / PER_TOKENS;
}

function tokens(bytes: number): number {
  return bytes / BYTES_PER_TOKEN;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}
