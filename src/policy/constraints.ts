/** Constraints on price, latency and context length, as masks with reason codes.
 *  In: a context, candidates with their features, constraints. Out: the candidates; those that break a constraint are
 *  masked. Pure: it reads only the facts that a step logs, so a judge masks the same candidates as the router.
 *  A missing fact breaks the constraint on it, because a limit that cannot be checked is not kept. */
import { RollbookError } from "../base/index.ts";
import type { DecisionCandidate, DecisionContext, MaskReason } from "./decision.ts";

export interface Constraints {
  /** US dollars for the call: feature `callPrice`, else the token prices times the tokens of the request. */
  readonly maxPriceUsdPerCall?: number;
  /** Compared with the feature `latencyMs`. */
  readonly maxLatencyMs?: number;
  /** The request and the reply that it allows (`maxTokens`) must fit the feature `contextTokens`. */
  readonly fitContext?: boolean;
  /** If every candidate breaks a constraint: choose the cheapest that fits the context (default), or refuse. */
  readonly onNone?: "cheapest" | "refuse";
}

/** Characters of English text per token, for a request that does not state its number of tokens. */
const CHARS_PER_TOKEN = 4;

interface Constrained {
  readonly candidates: readonly DecisionCandidate[];
  /** Constraints that the only selectable candidate breaks, because every candidate breaks one; else empty. Its own
   *  `reasons` stay empty: reasons of a candidate say why it cannot be chosen. */
  readonly relaxed: readonly MaskReason[];
}

export function constrain(
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
  constraints: Constraints,
): Constrained {
  const tokens = requestTokens(context);
  const faults = candidates.map((one) => faultsOf(one, { context, tokens, constraints }));
  const masked = candidates.map((one, i) => mask(one, faults[i]!));
  if (masked.every((one, i) => one === candidates[i])) return { candidates, relaxed: [] };
  const none = !masked.some((one) => one.selectable) && candidates.some((one) => one.selectable);
  if (!none || constraints.onNone === "refuse") return { candidates: masked, relaxed: [] };
  const spared = cheapest(candidates, { context, tokens, constraints });
  return {
    candidates: masked.map((one, i) => (i === spared ? candidates[i]! : one)),
    relaxed: faults[spared]!,
  };
}

/** Tokens of the whole request: the field `requestTokens`, else an estimate from the prompt. */
export function requestTokens({ prompt, fields }: DecisionContext): number {
  const stated = fields.requestTokens;
  return typeof stated === "number" ? stated : Math.ceil(prompt.length / CHARS_PER_TOKEN);
}

/** US dollars; undefined if the candidate declares no price.
 *  Token prices are per million; the reply counts `maxTokens`. */
function callPrice(
  { features }: DecisionCandidate,
  { fields }: DecisionContext,
  tokens: number,
): number | undefined {
  const { callPrice: stated, promptPrice, completionPrice } = features;
  if (stated !== undefined) return stated;
  if (promptPrice === undefined || completionPrice === undefined) return undefined;
  return (tokens * promptPrice + replyTokens(fields) * completionPrice) / 1e6;
}

/** Most tokens of the reply, if the request states a number. */
function replyTokens({ maxTokens }: DecisionContext["fields"]): number {
  return typeof maxTokens === "number" ? maxTokens : 0;
}

export function checkConstraints({ maxPriceUsdPerCall, maxLatencyMs }: Constraints): void {
  for (const [name, value] of Object.entries({ maxPriceUsdPerCall, maxLatencyMs }))
    if (value !== undefined && !(value >= 0))
      throw new RollbookError(
        "bad-router",
        { name, value },
        `${name} is ${value}, not a number of at least 0.`,
      );
}

interface Asked {
  readonly context: DecisionContext;
  readonly tokens: number;
  readonly constraints: Constraints;
}

function faultsOf(candidate: DecisionCandidate, { context, tokens, constraints }: Asked): MaskReason[] {
  const { maxPriceUsdPerCall, maxLatencyMs, fitContext } = constraints;
  const { latencyMs, contextTokens } = candidate.features;
  const price = callPrice(candidate, context, tokens);
  return [
    ...faultOf(price, maxPriceUsdPerCall, ["over-price", "price-unknown"]),
    ...faultOf(latencyMs, maxLatencyMs, ["over-latency", "latency-unknown"]),
    ...(fitContext === true
      ? contextTokens === undefined
        ? (["context-unknown"] as const)
        : contextNeeded(context, tokens) > contextTokens
          ? (["over-context"] as const)
          : []
      : []),
  ];
}

function faultOf(
  value: number | undefined,
  limit: number | undefined,
  [over, unknown]: readonly [MaskReason, MaskReason],
): MaskReason[] {
  if (limit === undefined) return [];
  if (value === undefined) return [unknown];
  return value > limit ? [over] : [];
}

function mask(candidate: DecisionCandidate, faults: readonly MaskReason[]): DecisionCandidate {
  if (faults.length === 0) return candidate;
  return { ...candidate, selectable: false, reasons: [...candidate.reasons, ...faults] };
}

/** Context length is a hard limit, so it is relaxed last:
 *  the cheapest candidate that fits, else the longest context. */
function cheapest(candidates: readonly DecisionCandidate[], asked: Asked): number {
  const open = candidates.flatMap((one, i) => (one.selectable ? [{ one, i }] : []));
  const fits = open.filter(({ one }) => fitsContext(one, asked));
  const ranked = (fits.length > 0 ? fits : open).map(({ one, i }) => ({
    i,
    price: callPrice(one, asked.context, asked.tokens) ?? Number.POSITIVE_INFINITY,
    length: fits.length > 0 ? 0 : (one.features.contextTokens ?? 0),
  }));
  return ranked.sort((a, b) => b.length - a.length || compare(a.price, b.price) || a.i - b.i)[0]!.i;
}

function fitsContext({ features }: DecisionCandidate, { context, tokens, constraints }: Asked): boolean {
  return constraints.fitContext !== true || contextNeeded(context, tokens) <= (features.contextTokens ?? 0);
}

/** Model servers refuse a request whose prompt and longest reply together exceed the context. */
function contextNeeded({ fields }: DecisionContext, tokens: number): number {
  return tokens + replyTokens(fields);
}

/** Compares without subtraction: the difference of two infinite prices is NaN. */
function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
