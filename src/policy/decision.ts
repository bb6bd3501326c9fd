/** Types of a decision: a policy's input, its candidates, its answer, and the reasons in it. docs/reference/serve.md lists
 *  the reasons with their meanings; a test compares. */
import type { Rng } from "../base/index.ts";
import type { RevisionKey } from "../contract/index.ts";

/** The part of a request that a router may see.
 *  Never the family or difficulty of a task: the router has to infer them. */
export interface DecisionContext {
  prompt: string;
  /** Structured facts of the request: role, turn, tools, limits. */
  fields: Readonly<Record<string, string | number | boolean>>;
  /** The vector of the prompt, for policies that read embeddings. It follows from the prompt and is never recorded. */
  embedding?: Float32Array | undefined;
  /** Used instead of `embedding` if several policies read the same request. */
  vectors?: PromptVectors | undefined;
}

/** Vectors of one prompt, by the embedding model that made each. */
export type PromptVectors = ReadonlyMap<string, Float32Array>;

/** The vector that the named embedding model made. A policy must not read the vector of another model. */
export function vectorFor(
  { embedding, vectors }: Pick<DecisionContext, "embedding" | "vectors">,
  model: string,
): Float32Array | undefined {
  return vectors === undefined ? embedding : vectors.get(model);
}

export interface DecisionCandidate {
  id: string;
  selectable: boolean;
  /** Reason codes; empty if selectable. */
  reasons: readonly string[];
  /** Facts known before the choice: price, latency, history. */
  features: Readonly<Record<string, number>>;
}

/** For probabilities estimated by drawing: the number of draws, and the least probability of a selectable candidate. */
interface MonteCarlo {
  draws: number;
  floor: number;
}

export interface PolicyAnswer {
  /** One per candidate, summing to 1; zero if not selectable. */
  probabilities: readonly number[];
  /** The policy's confidence in its best choice, in 0 … 1. The router compares it with the floor. */
  confidence: number;
  monteCarlo?: MonteCarlo;
}

/** Settings of `strategy: softmax`: P ∝ exp((quality − costWeight · callPrice) / temperature). */
export interface DeclaredSoftmax {
  readonly temperature: number;
  readonly costWeight: number;
  readonly candidates: readonly {
    readonly id: string;
    readonly quality: number;
    readonly callPrice?: number | undefined;
  }[];
}

/** A policy: features in, distribution out. Pure: the same question gets the same answer. */
export interface DecisionPolicy {
  family: string;
  revision: RevisionKey;
  /** Of a policy without training: the settings that its answers follow from. */
  declared?: DeclaredSoftmax;
  answer(context: DecisionContext, candidates: readonly DecisionCandidate[]): PolicyAnswer;
}

/** Source of the final distribution. */
export const DECISION_REASONS = {
  policy: "the learned policy decided",
  "below-floor": "the static table decided, because the confidence of the policy is below the floor",
  "no-policy": "the static table or another strategy decided, because no learned policy serves",
  "only-candidate": "only one candidate could be chosen",
  "constraints-relaxed": "every candidate breaks a constraint; `relaxed` has those that the choice breaks",
} as const;
export type DecisionReason = keyof typeof DECISION_REASONS;

/** Constraints that a candidate breaks. */
export const MASK_REASONS = {
  "over-price": "it costs more than the limit",
  "price-unknown": "its price is not declared",
  "over-latency": "it takes longer than the limit",
  "latency-unknown": "its latency is not declared",
  "over-context": "the request does not fit its context",
  "context-unknown": "its context length is not declared",
} as const;
export type MaskReason = keyof typeof MASK_REASONS;

/** Reasons why a candidate could not be chosen. */
export const CANDIDATE_REASONS = {
  ...MASK_REASONS,
  failed: "it failed on this call",
  resting: "its upstream is paused after failures",
} as const;

/** The choice of a second router for the same question. It is logged, not executed. */
interface ShadowDecision {
  revision: RevisionKey;
  chosen: number;
  /** One per candidate. */
  probabilities: readonly number[];
}

export interface Decision {
  chosen: number;
  /** The final distribution after constraints, floor, fallback and exploration. It is logged as the propensities. */
  probabilities: readonly number[];
  reason: DecisionReason;
  /** The policy's confidence, also if the floor overruled the policy; null without a policy. */
  confidence: number | null;
  /** Draws behind the policy's part of the distribution. Absent if the policy did not draw or was overruled. */
  monteCarlo?: MonteCarlo;
  /** The candidates with the router's masks. Absent if the router masked none. */
  candidates?: readonly DecisionCandidate[];
  /** Constraints that the chosen candidate breaks. Present if the reason is `constraints-relaxed`. */
  relaxed?: readonly string[];
  /** The router's policy, also if the table decided. */
  policy?: RevisionKey;
  shadow?: ShadowDecision;
}

export interface EnvironmentStep {
  readonly reward: number;
  /** The context of the next decision. After an end: the context that the next decision would have had. */
  readonly context: DecisionContext;
  /** Truncated: a limit stopped the episode before its natural end. */
  readonly end: "none" | "terminal" | "truncated";
}

/** An environment for one decision at a time. The same rng and the same choices give the same episode. */
export interface DecisionEnvironment {
  /** The same candidates in every state. */
  readonly candidates: readonly DecisionCandidate[];
  reset(rng: Rng): DecisionContext;
  step(choice: number): EnvironmentStep;
}
