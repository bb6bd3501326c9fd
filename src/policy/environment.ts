/** A world to act in, one decision at a time. Types only: simulators implement it, online learners act in it. */
import type { Rng } from "../base/index.ts";
import type { DecisionCandidate, DecisionContext } from "./decision.ts";

export interface EnvironmentStep {
  readonly reward: number;
  /** What the next decision sees; after an end, what it would have seen. */
  readonly context: DecisionContext;
  /** Truncated: a limit stopped the episode, which had more to come. */
  readonly end: "none" | "terminal" | "truncated";
}

/** Deterministic: the same rng and the same choices give the same episode. */
export interface DecisionEnvironment {
  /** The same in every state. */
  readonly candidates: readonly DecisionCandidate[];
  /** Begins an episode. */
  reset(rng: Rng): DecisionContext;
  step(choice: number): EnvironmentStep;
}
