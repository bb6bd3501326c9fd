/** Why a candidate was chosen, in plain words, with the features that mattered.
 *  In: a decision as made or as logged, the model behind it where it is known. Out: sentences, and the numbers in them. */
import { figure } from "../base/index.ts";
import {
  type CandidateScore,
  crowdedBuckets,
  type Decision,
  type DecisionCandidate,
  type DecisionContext,
  explainPolicy,
  type FeaturePart,
  type PolicyModel,
  vectorFor,
} from "../policy/index.ts";

import { embeddingOf } from "./served.ts";

interface ExplainRequest {
  readonly decision: Pick<Decision, "chosen" | "probabilities" | "reason" | "confidence" | "shadow">;
  readonly context: DecisionContext;
  readonly candidates: readonly DecisionCandidate[];
  /** Of the learned policy; absent: the probabilities are told and not where they come from. */
  readonly model?: PolicyModel | undefined;
  /** Where known. */
  readonly router?: { readonly floor: number; readonly exploration: number } | undefined;
  /** What decides where the policy does not: a table; where none is configured the candidates in their order, or by declared
   *  worth; or what the record does not say. */
  readonly fallback?: "table" | "list" | "worth" | "unknown" | undefined;
  /** Why this router serves. */
  readonly why?: string | undefined;
}

export interface Explanation {
  readonly chosen: string;
  /** NaN: not logged. */
  readonly probability: number;
  readonly reason: Decision["reason"];
  readonly confidence: number | null;
  /** Who could not be chosen, and why. */
  readonly masked: readonly { readonly id: string; readonly reasons: readonly string[] }[];
  /** How the policy scores each candidate that could be chosen, best first. */
  readonly scores: readonly CandidateScore[];
  /** What sets the choice apart from the next best candidate, strongest first: parts of its score less theirs. A positive part
   *  speaks for the choice, a negative one against it. Where the checkpoint knows an average request, they are what sets this
   *  one apart from it. */
  readonly features: readonly FeaturePart[];
  readonly lines: readonly string[];
}

/** A recorded call does not hold the vector that its router read. */
function lacksEmbedding(model: PolicyModel, context: DecisionContext): boolean {
  const read = embeddingOf(model)?.model;
  return read !== undefined && vectorFor(context, read) === undefined && context.prompt !== "";
}

/** Features that are told for the choice, and against it; the JSON has them all. */
const TOLD = 5;

/** Parts below this share of the strongest are not told. */
const NEGLIGIBLE = 0.02;

export function explainDecision(request: ExplainRequest): Explanation {
  const { decision, candidates, model, context } = request;
  const { chosen, probabilities, reason, confidence } = decision;
  const { id } = candidates[chosen]!;
  const open = candidates.filter((one) => one.selectable);
  const scores =
    model === undefined || open.length === 0 || lacksEmbedding(model, context)
      ? []
      : explainPolicy(model, context, open).sort((a, b) => rankOf(b) - rankOf(a));
  const facts = {
    ...{ chosen: id, probability: probabilities[chosen]!, reason, confidence },
    masked: candidates.flatMap(({ id: each, selectable, reasons }) =>
      selectable ? [] : [{ id: each, reasons }],
    ),
    scores,
    features: forChoice(scores, id),
  };
  return { ...facts, lines: linesOf(facts, request) };
}

type Facts = Omit<Explanation, "lines">;

function linesOf(facts: Facts, request: ExplainRequest): string[] {
  const { chosen, probability, masked, scores } = facts;
  const { router, why, candidates, decision } = request;
  return [
    Number.isNaN(probability)
      ? `${chosen} was chosen; with what probability was not logged.`
      : `${chosen} was chosen with probability ${figure(probability)}.`,
    reasonLine(facts, request),
    ...(why === undefined ? [] : [usedLine(why, facts)]),
    ...masked.map(({ id, reasons }) => `${id} could not be chosen: ${reasons.map(inWords).join(", ")}.`),
    ...(isExplored(facts, request)
      ? [`The draw took it for exploration: ${figure(router!.exploration)} of choices are spread evenly.`]
      : []),
    ...scores.map(scoreLine),
    ...featureLines(facts, request),
    ...(decision.shadow === undefined
      ? []
      : [
          `The shadow ${decision.shadow.revision.id} would have chosen ${candidates[decision.shadow.chosen]!.id}, and gave ${chosen} probability ${figure(decision.shadow.probabilities[decision.chosen]!)}.`,
        ]),
  ];
}

/** What serves: a policy by its revision, none with the reason, or a router by what it is for. */
function usedLine(why: string, { reason }: Facts): string {
  const said = why.replace(/\.$/, "");
  if (why.startsWith("revision ")) return `Policy used: ${said}.`;
  return reason === "no-policy" ? `Policy used: none; ${said}.` : `The router: ${said}.`;
}

function untabledText({ candidates, decision: { probabilities }, fallback }: ExplainRequest): string {
  const { id } = candidates[probabilities.indexOf(Math.max(...probabilities))]!;
  const rule = fallback === "worth" ? "the best declared quality less price" : "the first candidate";
  return `no table is configured, so the router prefers ${rule} (${id})`;
}

function reasonLine({ reason, confidence }: Facts, request: ExplainRequest): string {
  const { router, fallback = "table" } = request;
  const sure = confidence === null ? "" : ` with confidence ${figure(confidence)}`;
  const floor = router === undefined ? "its floor" : `its floor of ${figure(router.floor)}`;
  switch (reason) {
    case "policy":
      return `The learned policy decided${sure}, at or above ${floor}.`;
    case "below-floor":
      return fallback === "table"
        ? `The static table decided: the policy answered${sure}, below ${floor}.`
        : `The policy answered${sure}, below ${floor}, and ${untabledText(request)}.`;
    case "no-policy":
      if (fallback === "unknown")
        return "The record does not say what decided: no router of Rollbook wrote it.";
      return fallback === "table"
        ? "The static table decided: no learned policy serves."
        : `No learned policy is in use and ${untabledText(request)}.`;
    case "only-candidate":
      return "It was the only candidate that could be chosen.";
    case "constraints-relaxed":
      return "No candidate kept the constraints, so the cheapest that fits the request was taken.";
    default:
      return reason satisfies never;
  }
}

/** Where the policy or the table leaves it no more than the even share. */
function isExplored({ probability, reason, masked }: Facts, { router, candidates }: ExplainRequest): boolean {
  if (router === undefined || (reason !== "policy" && reason !== "below-floor" && reason !== "no-policy"))
    return false;
  const share = router.exploration / (candidates.length - masked.length);
  return router.exploration > 0 && probability <= share * (1 + 1e-9);
}

function scoreLine({ id, known, score, mean, bonus, tried }: CandidateScore): string {
  if (!known && mean === undefined) return `${id}: the policy has never seen it.`;
  if (score === undefined) return `${id}: not tried yet, so it comes first.`;
  if (mean === undefined) return `${id}: score ${figure(score)}.`;
  const times = tried === undefined ? "" : ` over ${tried} decisions`;
  return `${id}: estimated reward ${figure(mean)}${times}, uncertainty ${figure(bonus ?? 0)}.`;
}

/** What sets this request apart from an average one, and what the policy says of that one. */
function featureLines(facts: Facts, { model }: ExplainRequest): string[] {
  const usual = facts.scores.flatMap(({ id, usual: score }) =>
    score === undefined ? [] : [`${id} ${figure(score)}`],
  );
  if (facts.features.length === 0 && usual.length === 0) return [];
  const told = sidesOf(facts, usual.length === 0 ? "" : ", compared with an average request");
  const buckets = crowdedBuckets(model!);
  return [
    ...(usual.length === 0 ? [] : [`In an average request of the training: ${usual.join(", ")}.`]),
    ...told,
    ...(usual.length > 0
      ? []
      : [
          "The checkpoint does not say what an average request is, so parts that every request has are among them. Train again to see what sets this one apart.",
        ]),
    ...(buckets === undefined || !told.some((line) => line.includes("hash bucket"))
      ? []
      : [
          `The policy reads words through ${buckets} hash buckets. Words of other requests share them, so the part of a bucket is not of the words named alone.`,
        ]),
  ];
}

/** What speaks for the choice, and what against it. */
function sidesOf({ chosen, features, scores }: Facts, compared: string): string[] {
  if (features.length === 0)
    return ["Nothing that the policy reads sets this request apart from an average one."];
  const other = scores.find(({ id }) => id !== chosen);
  const least = NEGLIGIBLE * Math.abs(features[0]!.part);
  const side = (sign: 1 | -1) =>
    features
      .filter(({ part }) => sign * part >= least)
      .slice(0, TOLD)
      .map(({ feature, part }) => `${feature} (${part < 0 ? "" : "+"}${Number(part.toPrecision(2))})`)
      .join(", ");
  const rather = other === undefined ? chosen : `${chosen} rather than ${other.id}`;
  const [pro, contra] = [side(1), side(-1)];
  return [
    ...(pro === "" ? [] : [`For ${rather}${compared}: ${pro}.`]),
    ...(contra === "" ? [] : [`Against ${pro === "" ? rather + compared : chosen}: ${contra}.`]),
  ];
}

/** What is nearer to 0 is rounding: parts that two candidates share. */
const ROUNDING = 1e-12;

function forChoice(scores: readonly CandidateScore[], chosen: string): FeaturePart[] {
  const own = scores.find(({ id }) => id === chosen)?.parts ?? [];
  const other = scores.find(({ id }) => id !== chosen)?.parts ?? [];
  const parts = new Map(own.map(({ feature, part }) => [feature, part]));
  for (const { feature, part } of other) parts.set(feature, (parts.get(feature) ?? 0) - part);
  return [...parts]
    .map(([feature, part]) => ({ feature, part }))
    .filter(({ part }) => Math.abs(part) > ROUNDING)
    .sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
}

/** An untried candidate of a bandit comes before all. */
function rankOf({ score, known, tried }: CandidateScore): number {
  return score ?? (known || tried === 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY);
}

const WORDS: Readonly<Record<string, string>> = {
  "over-price": "it costs more than the limit",
  "price-unknown": "its price is not declared",
  "over-latency": "it takes longer than the limit",
  "latency-unknown": "its latency is not declared",
  "over-context": "the request does not fit its context",
  "context-unknown": "its context length is not declared",
  failed: "it failed on this call",
  resting: "its upstream is paused after failures",
};

function inWords(reason: string): string {
  return WORDS[reason] ?? reason;
}
