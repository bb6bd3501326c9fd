/** Explains in plain words why a candidate was chosen, with the features that mattered.
 *  In: a decision as made or as logged, its model if known. Out: sentences, and the numbers in them. */
import { figure } from "../base/index.ts";
import {
  CANDIDATE_REASONS,
  type CandidateScore,
  crowdedBuckets,
  type Decision,
  type DecisionCandidate,
  type DecisionContext,
  type DecisionPolicy,
  type DeclaredSoftmax,
  explainPolicy,
  type FeaturePart,
  type PolicyModel,
  type Router,
  vectorFor,
} from "../policy/index.ts";

import { embeddingOf } from "./served.ts";

interface ExplainRequest {
  readonly decision: Pick<
    Decision,
    "chosen" | "probabilities" | "reason" | "relaxed" | "confidence" | "shadow"
  >;
  readonly context: DecisionContext;
  readonly candidates: readonly DecisionCandidate[];
  /** Model of the learned policy; if absent, the probabilities are reported without their origin. */
  readonly model?: PolicyModel | undefined;
  /** Settings of the router, if known. */
  readonly router?: ExplainedRouter | undefined;
  /** Rule that decides if the policy does not: `table`; without a table `list` (the order of the candidates) or `worth`
   *  (declared worth). Of a record: `order` (the order of the candidates, with or without a table), `unstated` (a router
   *  wrote the record, which does not state the rule) or `unknown` (it does not say that a router wrote it). */
  readonly fallback?: "table" | "list" | "worth" | "order" | "unstated" | "unknown" | undefined;
  /** Reason why this router serves. */
  readonly why?: string | undefined;
}

interface ExplainedRouter extends Pick<Router, "floor" | "exploration">, Partial<Pick<Router, "table">> {
  readonly policy?: Pick<DecisionPolicy, "declared"> | undefined;
}

export interface Explanation {
  readonly chosen: string;
  /** NaN if not logged. */
  readonly probability: number;
  readonly reason: Decision["reason"];
  readonly confidence: number | null;
  /** Candidates that could not be chosen, with the reasons. */
  readonly masked: readonly { readonly id: string; readonly reasons: readonly string[] }[];
  /** Constraints that the choice breaks, because every candidate breaks one. Empty in records that do not state them. */
  readonly relaxed: readonly string[];
  /** Scores of the policy for the selectable candidates, best first. */
  readonly scores: readonly CandidateScore[];
  /** Parts of the choice's score minus those of the next best candidate that the policy knows, strongest first. A positive part favours the
   *  choice, a negative one is against it. If the checkpoint knows an average request, the parts are relative to it. */
  readonly features: readonly FeaturePart[];
  readonly lines: readonly string[];
}

/** A recorded call does not hold the vector that its router read. */
function lacksEmbedding(model: PolicyModel, context: DecisionContext): boolean {
  const read = embeddingOf(model)?.model;
  return read !== undefined && vectorFor(context, read) === undefined && context.prompt !== "";
}

/** Maximum number of features listed for the choice, and against it; the JSON has all of them. */
const TOLD = 5;

/** Parts below this share of the strongest part are not listed. */
const NEGLIGIBLE = 0.02;

export function explainDecision(request: ExplainRequest): Explanation {
  const { decision, candidates, model, context } = request;
  const { chosen, probabilities, reason, relaxed = [], confidence } = decision;
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
    relaxed,
    scores,
    features: forChoice(scores, id),
  };
  return { ...facts, lines: linesOf(facts, request) };
}

type Facts = Omit<Explanation, "lines">;

function linesOf(facts: Facts, request: ExplainRequest): string[] {
  const { chosen, probability, masked, relaxed, scores } = facts;
  const { why, candidates, decision } = request;
  return [
    Number.isNaN(probability)
      ? `${chosen} was chosen; with what probability was not logged.`
      : `${chosen} was chosen with probability ${figure(probability)}.`,
    ...drawLine(facts, request),
    reasonLine(facts, request),
    ...ruleLine(facts, request),
    ...(relaxed.length === 0 ? [] : [`${chosen} was taken although ${relaxed.map(inWords).join(" and ")}.`]),
    ...(why === undefined ? [] : [usedLine(why, facts, request)]),
    ...masked.map(({ id, reasons }) => `${id} could not be chosen: ${reasons.map(inWords).join(", ")}.`),
    ...scores.map((each) => scoreLine(each, scoreName(request.model))),
    ...featureLines(facts, request),
    ...(decision.shadow === undefined
      ? []
      : [
          `The shadow ${decision.shadow.revision.id} would have chosen ${candidates[decision.shadow.chosen]!.id}, and gave ${chosen} probability ${figure(decision.shadow.probabilities[decision.chosen]!)}.`,
        ]),
  ];
}

/** Line about a draw that took another candidate than the most probable one. */
function drawLine(facts: Facts, request: ExplainRequest): string[] {
  const { chosen, probability } = facts;
  const [id, most] = mostProbable(request);
  if (!(probability < most)) return []; // also if a probability is not logged
  const explored = isExplored(facts, request)
    ? ` for exploration: ${figure(request.router!.exploration)} of choices are uniform over the candidates`
    : "";
  return [`${id} was more probable (${figure(most)}); the random draw took ${chosen}${explored}.`];
}

function mostProbable({ candidates, decision: { probabilities } }: ExplainRequest): [string, number] {
  const most = Math.max(...probabilities);
  return [candidates[probabilities.indexOf(most)]?.id ?? "", most];
}

/** Line about the serving router: a policy by its revision, no policy with the reason, or a router by its purpose. */
function usedLine(why: string, { reason }: Facts, { fallback }: ExplainRequest): string {
  const said = why.replace(/\.$/, "");
  if (fallback === "unknown") return `Recorded as chosen by ${said}.`;
  if (why.startsWith("revision ")) return `Policy used: ${said}.`;
  return reason === "no-policy" ? `Policy used: none; ${said}.` : `The router: ${said}.`;
}

function untabledText(request: ExplainRequest): string {
  const [id] = mostProbable(request);
  const rule = request.fallback === "worth" ? "the best declared quality less price" : "the first candidate";
  return `no table is configured, so the router prefers ${rule} (${id})`;
}

/** A step names its router by digest only. */
const UNSTATED =
  "The book has no record of its router, so the table or the strategy that decided is unknown.";

/** Line about the rule of the static table that made the choice. */
function ruleLine({ reason }: Facts, request: ExplainRequest): string[] {
  const { router, fallback, context, candidates } = request;
  const isByTable = reason === "below-floor" || (reason === "no-policy" && declaredBy(request) === undefined);
  if (!isByTable || fallback !== "table" || isUniform(request)) return [];
  const rule = router?.table?.ruleFor(context, candidates);
  if (rule === undefined) return [];
  const order = rule.choose.join(", then ");
  return [
    rule.number === undefined
      ? `The default of the table was used. It prefers ${order}.`
      : `Rule ${rule.number} of the table holds: ${JSON.stringify(rule.when)}. It prefers ${order}.`,
  ];
}

function declaredBy({ router }: ExplainRequest): DeclaredSoftmax | undefined {
  return router?.policy?.declared;
}

function softmaxLine(
  { candidates: declared, costWeight, temperature }: DeclaredSoftmax,
  { candidates }: ExplainRequest,
): string {
  const facts = candidates
    .filter(({ selectable }) => selectable)
    .map(({ id }) => {
      const one = declared.find((each) => each.id === id);
      if (one === undefined) return `${id} (undeclared)`;
      return `${id} (quality ${figure(one.quality)}, callPrice ${figure(one.callPrice ?? 0)})`;
    });
  return `Strategy softmax decided: P ∝ exp((quality − costWeight · callPrice) / temperature), with costWeight ${figure(costWeight)} and temperature ${figure(temperature)}, for ${facts.join(", ")}.`;
}

function reasonLine({ reason, confidence, scores }: Facts, request: ExplainRequest): string {
  const { router, fallback = "table" } = request;
  const declared = declaredBy(request);
  const known = scores.filter((each) => each.known);
  const sure = confidence === null ? "" : ` with confidence ${figure(confidence)}`;
  const floor = router === undefined ? "its floor" : `its floor of ${figure(router.floor)}`;
  switch (reason) {
    case "policy":
      return scores.length > 1 && known.length === 1
        ? `The policy decided: of these candidates it knows only ${known[0]!.id}.`
        : `The policy decided${sure}, at or above ${floor}.`;
    case "below-floor":
      if (fallback === "unstated") return `The policy answered${sure}, below ${floor}. ${UNSTATED}`;
      return fallback === "table"
        ? `The static table decided: the policy answered${sure}, below ${floor}.`
        : `The policy answered${sure}, below ${floor}, and ${untabledText(request)}.`;
    case "no-policy":
      if (declared !== undefined) return softmaxLine(declared, request);
      if (fallback === "unknown")
        return "The record does not say what decided: no router of Rollbook wrote it.";
      if (isUniform(request))
        return "No learned policy was in use. The router chose at random, with equal probabilities.";
      if (fallback === "unstated") return `No learned policy was in use. ${UNSTATED}`;
      if (fallback === "order")
        return `No learned policy was in use, so the router preferred the first candidate (${mostProbable(request)[0]}).`;
      return fallback === "table"
        ? "The static table decided: no learned policy serves."
        : `No learned policy is in use and ${untabledText(request)}.`;
    case "only-candidate":
      return "It was the only candidate that could be chosen.";
    case "constraints-relaxed":
      return "No candidate kept the constraints. The router took the cheapest candidate whose context fits the request, or the longest context if none fits.";
    default:
      return reason satisfies never;
  }
}

function isUniform({ candidates, decision: { probabilities } }: ExplainRequest): boolean {
  const open = probabilities.filter((_, i) => candidates[i]!.selectable);
  return open.length > 1 && open.every((each) => each === open[0]);
}

/** True if the policy or the table gives the choice no more than the uniform exploration share. */
function isExplored({ probability, reason, masked }: Facts, { router, candidates }: ExplainRequest): boolean {
  if (router === undefined || (reason !== "policy" && reason !== "below-floor" && reason !== "no-policy"))
    return false;
  const share = router.exploration / (candidates.length - masked.length);
  return router.exploration > 0 && probability <= share * (1 + 1e-9);
}

/** Networks and softmax policies score candidates on a scale of their own. */
function scoreName(model: PolicyModel | undefined): string {
  const isReward = model?.kind === "value" || model?.kind === "linucb" || model?.kind === "thompson-linear";
  return isReward ? "estimated reward" : "score";
}

function scoreLine({ id, known, score, mean, bonus, tried }: CandidateScore, name: string): string {
  if (!known && mean === undefined) return `${id}: the policy has never seen it.`;
  if (score === undefined) return `${id}: not tried yet, so it comes first.`;
  if (mean === undefined) return `${id}: ${name} ${figure(score)}.`;
  const times = tried === undefined ? "" : ` over ${tried} decisions`;
  return `${id}: estimated reward ${figure(mean)}${times}, uncertainty ${figure(bonus ?? 0)}.`;
}

/** Lines that lead from the difference of two scores in an average request to the difference in this one. */
function featureLines({ chosen, features, scores }: Facts, { model }: ExplainRequest): string[] {
  const own = scores.find(({ id }) => id === chosen);
  if (own === undefined) return [];
  const other = bestOther(scores, chosen);
  const compared = other === undefined ? [own] : [own, other];
  const isUsual = compared.some(({ usual }) => usual !== undefined);
  if (features.length === 0 && !isUsual) return [];
  // The parts of a candidate that the policy has never seen are unknown.
  if (isUsual && compared.some(({ usual }) => usual === undefined)) return [];
  if (features.length === 0)
    return ["Nothing that the policy reads sets this request apart from an average one."];
  const told = isUsual
    ? [usualLine(compared, scoreName(model)), ...sideLines(features, MOVES)]
    : [
        ...sideLines(features, {
          up: `For ${other === undefined ? chosen : `${chosen} rather than ${other.id}`}`,
          down: `Against ${chosen}`,
        }),
        "The checkpoint does not say what an average request is, so parts that every request has are among them. Train again to see what sets this one apart.",
      ];
  const buckets = crowdedBuckets(model!);
  return [
    ...told,
    ...(buckets === undefined || !told.some((line) => line.includes("hash bucket"))
      ? []
      : [
          `The policy reads words through ${buckets} hash buckets. Different words can fall into one bucket, so its contribution can come from other words too.`,
        ]),
  ];
}

const MOVES = { up: "Raised most by", down: "Lowered most by" };

/** The score of the choice, minus that of the best other candidate: in an average request, and in this one. */
function usualLine([own, other]: readonly CandidateScore[], name: string): string {
  const now = ({ mean, score }: CandidateScore) => mean ?? score!;
  const [of, usual, here] =
    other === undefined
      ? ["", own!.usual!, now(own!)]
      : [` minus that of ${other.id}`, own!.usual! - other.usual!, now(own!) - now(other)];
  return `For an average training request, the ${name} of ${own!.id}${of} is ${brief(usual)}. For this request, it is ${brief(here)}.`;
}

const brief = (value: number) => String(Number(value.toPrecision(3)));

/** Features with positive parts and those with negative parts, without the negligible ones. */
function sideLines(features: readonly FeaturePart[], heads: { up: string; down: string }): string[] {
  const least = NEGLIGIBLE * Math.abs(features[0]!.part);
  const side = (sign: 1 | -1) =>
    features
      .filter(({ part }) => sign * part >= least)
      .slice(0, TOLD)
      .map(({ feature, part }) => `${feature} (${part < 0 ? "" : "+"}${Number(part.toPrecision(2))})`)
      .join(", ");
  const [up, down] = [side(1), side(-1)];
  return [...(up === "" ? [] : [`${heads.up}: ${up}.`]), ...(down === "" ? [] : [`${heads.down}: ${down}.`])];
}

/** The best other candidate that the policy knows. */
function bestOther(scores: readonly CandidateScore[], chosen: string): CandidateScore | undefined {
  return scores.find(({ id, known }) => known && id !== chosen);
}

/** Parts closer to 0 are rounding: two candidates share them. */
const ROUNDING = 1e-12;

function forChoice(scores: readonly CandidateScore[], chosen: string): FeaturePart[] {
  const own = scores.find(({ id }) => id === chosen)?.parts ?? [];
  const other = bestOther(scores, chosen)?.parts ?? [];
  const parts = new Map(own.map(({ feature, part }) => [feature, part]));
  for (const { feature, part } of other) parts.set(feature, (parts.get(feature) ?? 0) - part);
  return [...parts]
    .map(([feature, part]) => ({ feature, part }))
    .filter(({ part }) => Math.abs(part) > ROUNDING)
    .sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
}

/** An untried candidate of a bandit ranks first. */
function rankOf({ score, known, tried }: CandidateScore): number {
  return score ?? (known || tried === 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY);
}

const WORDS: Readonly<Record<string, string>> = CANDIDATE_REASONS;

function inWords(reason: string): string {
  return WORDS[reason] ?? reason;
}
