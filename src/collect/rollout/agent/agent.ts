/** What runs one rollout: a function, a program or a server, behind one interface.
 *  In: payload and context. Out: whatever it returned, not yet checked (output.ts reads it).
 *  An agent is known by the digest of its code, which enters the ids of its rollouts. */
import { type Digest, given, type Json, type Rng } from "../../../base/index.ts";
import type { Ending, RolloutDraft } from "../../../contract/index.ts";
import type { Scorer } from "./reward.ts";
import type { RolloutConfig } from "./rollout-config.ts";

export type Payload = Readonly<Record<string, Json>>;

export interface RolloutContext {
  readonly rolloutId: string;
  /** Which sample of its task this is, from 0. */
  readonly sample: number;
  /** 1 for the first; a later attempt has the same seed. */
  readonly attempt: number;
  readonly seed: bigint;
  /** Seeded with `seed`. */
  readonly rng: Rng;
  /** Aborts at the time limit, when the launch is cancelled, and when the claim is lost. */
  readonly signal: AbortSignal;
  readonly rolloutConfig: RolloutConfig;
  /** Where this rollout's model calls are to go, and the key that names it there; absent without a gateway. */
  readonly baseUrl?: string;
  readonly apiKey?: string;
  /** The turns that this rollout may take; absent: any number. */
  readonly maxTurns?: number;
  /** Counts a turn and returns its number, from 1; past the limit it throws, and the rollout is truncated. */
  nextTurn(): number;
  log(message: string): void;
}

type Reward =
  | number
  /** Rewards in order of time; the last one counts, as trainers take it. */
  | readonly number[]
  /** Named terms; a bare number has weight 1. */
  | Readonly<Record<string, number | { readonly value: number; readonly weight: number }>>;

export interface RolloutOutput {
  /** Absent: unlabelled, which is not 0. */
  readonly reward?: Reward;
  /** Kept with the rollout; it does not count. */
  readonly metrics?: Readonly<Record<string, number>>;
  readonly finalState?: Json;
  /** Terminal unless told. */
  readonly ending?: Ending;
  /** Choices that the agent recorded itself. Without any, and without a gateway, the agent's own run is the one choice. */
  readonly streams?: RolloutDraft["streams"];
  readonly calls?: RolloutDraft["calls"];
}

export type RolloutFunction = (
  payload: Payload,
  context: RolloutContext,
) => RolloutOutput | number | undefined | Promise<RolloutOutput | number | undefined>;

export interface RolloutLimits {
  readonly timeMs?: number;
  readonly maxTurns?: number;
  readonly budgetUsd?: number;
}

export interface RolloutDefinition {
  /** Marks the object, whichever copy of this package made it. */
  readonly rollbook: "rollout-definition.v1";
  readonly run: RolloutFunction;
  readonly scorer?: Scorer;
  readonly limits?: RolloutLimits;
}

export interface Agent {
  readonly name: string;
  readonly digest: Digest;
  readonly scorer?: Scorer;
  readonly limits?: RolloutLimits;
  /** Its errors are the agent's own words; those of processes and servers come from what runs them here. */
  readonly inProcess?: true;
  /** What becomes of its word that others are to blame: it is taken and marked, unless told. */
  readonly blame?: "marked" | "refused" | "trusted";
  run(payload: Payload, context: RolloutContext): Promise<unknown>;
}

/** Wraps an agent: `export default defineRollout(async (payload, context) => ({ reward: 1 }))`. */
export function defineRollout(
  run: RolloutFunction,
  options: { readonly scorer?: Scorer; readonly limits?: RolloutLimits } = {},
): RolloutDefinition {
  return Object.freeze({ rollbook: "rollout-definition.v1" as const, run, ...options });
}

/** An agent in this process. The digest is of its code, which the caller knows and a function does not. */
export function functionAgent(
  definition: RolloutDefinition | RolloutFunction,
  { name, digest }: { name: string; digest: Digest },
): Agent {
  const { run, scorer, limits } = typeof definition === "function" ? defineRollout(definition) : definition;
  return {
    name,
    digest,
    inProcess: true,
    ...given({ scorer, limits }),
    run: async (payload, context) => run(payload, context),
  };
}
