/** The words of a decision: what a policy sees, what it may choose, what it answers. */
import type { Rng } from "../base/index.ts";
import type { RevisionKey } from "../contract/index.ts";

/** What a router may see of a request. Never the family or difficulty of a task: those it has to infer. */
export interface DecisionContext {
  prompt: string;
  /** Structured facts of the request: role, turn, tools, limits. */
  fields: Readonly<Record<string, string | number | boolean>>;
  /** The vector of the prompt, for policies that read embeddings. It follows from the prompt and is never recorded. */
  embedding?: Float32Array | undefined;
  /** Instead, where several policies read the same request. */
  vectors?: PromptVectors | undefined;
}

/** Vectors of one prompt, by the embedding model that made each. */
export type PromptVectors = ReadonlyMap<string, Float32Array>;

/** The vector of a model: policies of another one must not read it. */
export function vectorFor(
  { embedding, vectors }: Pick<DecisionContext, "embedding" | "vectors">,
  model: string,
): Float32Array | undefined {
  return vectors === undefined ? embedding : vectors.get(model);
}

export interface DecisionCandidate {
  id: string;
  selectable: boolean;
  /** Why not, if not. */
  reasons: readonly string[];
  /** What is known of the candidate beforehand: price, latency, history. */
  features: Readonly<Record<string, number>>;
}

/** Probabilities that were estimated by drawing: how often, and the least any selectable candidate gets. */
interface MonteCarlo {
  draws: number;
  floor: number;
}

export interface PolicyAnswer {
  /** One per candidate, summing to 1, zero where not selectable. */
  probabilities: readonly number[];
  /** How sure the policy is of its best choice, in 0 … 1. Compared with the floor. */
  confidence: number;
  monteCarlo?: MonteCarlo;
}

/** A trained policy: features in, distribution out. Pure: the same question gets the same answer. */
export interface DecisionPolicy {
  family: string;
  revision: RevisionKey;
  answer(context: DecisionContext, candidates: readonly DecisionCandidate[]): PolicyAnswer;
}

/** Why the final distribution is what it is. `constraints-relaxed`: no candidate kept the router's constraints. */
export type DecisionReason =
  | "policy"
  | "below-floor"
  | "no-policy"
  | "only-candidate"
  | "constraints-relaxed";

/** What a second router would have done with the same question. It does not act. */
interface ShadowDecision {
  revision: RevisionKey;
  chosen: number;
  /** One per candidate. */
  probabilities: readonly number[];
}

export interface Decision {
  chosen: number;
  /** The final distribution, after constraints, floor, fallback and exploration: what is logged as propensity. */
  probabilities: readonly number[];
  reason: DecisionReason;
  /** Of the policy, also where the floor overruled it; null without a policy. */
  confidence: number | null;
  /** How the policy's part of the distribution was made; absent where the policy did not draw, or was overruled. */
  monteCarlo?: MonteCarlo;
  /** The candidates as the router saw them, where it masked some; absent where they are as asked. */
  candidates?: readonly DecisionCandidate[];
  /** The policy behind the router, whether it acted or the table did. */
  policy?: RevisionKey;
  shadow?: ShadowDecision;
}

export interface EnvironmentStep {
  readonly reward: number;
  /** What the next decision sees; after an end, what it would have seen. */
  readonly context: DecisionContext;
  /** Truncated: a limit stopped the episode, which had more to come. */
  readonly end: "none" | "terminal" | "truncated";
}

/** A world to act in, one decision at a time. The same rng and the same choices give the same episode. */
export interface DecisionEnvironment {
  /** The same in every state. */
  readonly candidates: readonly DecisionCandidate[];
  /** Begins an episode. */
  reset(rng: Rng): DecisionContext;
  step(choice: number): EnvironmentStep;
}
