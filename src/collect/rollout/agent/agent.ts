/** The agent interface: a function, a program or a server that runs one rollout.
 *  In: payload and context. Out: the agent's return value, not yet checked (output.ts reads it).
 *  An agent is identified by the digest of its code, which enters the ids of its rollouts. */
import { type Digest, given, type Json, type Rng } from "../../../base/index.ts";
import type { Ending, RolloutDraft } from "../../../contract/index.ts";
import type { Scorer } from "./reward.ts";
import type { RolloutConfig } from "./rollout-config.ts";

export type Payload = Readonly<Record<string, Json>>;

export interface RolloutContext {
  readonly rolloutId: string;
  /** Index of this sample within its task, from 0. */
  readonly sample: number;
  /** 1 for the first attempt. Later attempts have the same seed. */
  readonly attempt: number;
  readonly seed: bigint;
  /** Seeded with `seed`. */
  readonly rng: Rng;
  /** Aborts at the time limit, when the launch is cancelled, and when the claim is lost. */
  readonly signal: AbortSignal;
  readonly rolloutConfig: RolloutConfig;
  /** URL for this rollout's model calls: the gateway, else the model server of the launch. Absent if there is neither. */
  readonly baseUrl?: string;
  /** Identifies the rollout to the gateway. Without a gateway, OPENAI_API_KEY of the agent's environment. */
  readonly apiKey?: string;
  /** Limit of turns for this rollout. Absent: no limit. */
  readonly maxTurns?: number;
  /** Counts a turn and returns its number, from 1. Past the limit it throws, and the rollout is truncated. */
  nextTurn(): number;
  log(message: string): void;
}

type Reward =
  | number
  /** Rewards in order of time. The last reward counts, as in trainers. */
  | readonly number[]
  /** Named terms; a bare number has weight 1. */
  | Readonly<Record<string, number | { readonly value: number; readonly weight: number }>>;

export interface RolloutOutput {
  /** Absent: the rollout is unlabelled, which differs from a reward of 0. */
  readonly reward?: Reward;
  /** Stored with the rollout. Metrics do not count towards the reward. */
  readonly metrics?: Readonly<Record<string, number>>;
  readonly finalState?: Json;
  /** Default: terminal. */
  readonly ending?: Ending;
  /** Choices that the agent recorded itself. Without choices and a gateway, the agent's run is the only choice. */
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
  /** Marks the object, so that a definition made by another copy of this package is recognized. */
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
  /** True: the agent throws its errors itself. Errors of processes and servers come from their runner here. */
  readonly inProcess?: true;
  /** Treatment of a failure that the agent attributes to another owner. Default: accepted and marked. */
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

/** A key never crosses the launch: an agent without a gateway has that of its own environment. */
export function keyOf(
  { baseUrl, apiKey }: Pick<RolloutContext, "baseUrl" | "apiKey">,
  env = process.env,
): string | undefined {
  return apiKey ?? (baseUrl === undefined ? undefined : env.OPENAI_API_KEY);
}

/** Makes an agent that runs in this process. The caller passes the digest of its code, which a function cannot know. */
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
    run: async (payload, context) =>
      run(payload, Object.freeze({ ...context, ...given({ apiKey: keyOf(context) }) })),
  };
}
