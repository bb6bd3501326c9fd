/** Rewards: functions of the facts of a finished rollout, and sums of named, weighted terms.
 *  In: task with its label, ending, metrics, usage. Out: scores that name their scorer by digest. The digest covers
 *  names, weights, bounds and the text of every function. Use `version` for the values that a function closes over.
 *  Pure: the same input gives the same scores, so that a stored rollout can be scored again. */
import { type Digest, digestJson, type Json, parseId, RollbookError } from "../../../base/index.ts";
import type { Ending } from "../../../contract/index.ts";
import { failedBy } from "./failure.ts";
import { isReward, type Score, totalOf } from "./output.ts";

export interface RolloutUsage {
  readonly calls: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Sum over the calls with a known cost. */
  readonly costUsd: number;
  /** Number of calls with an unknown cost. Absent: 0. */
  readonly unpriced?: number;
}

export interface RewardInput {
  readonly task: {
    readonly payload: Readonly<Record<string, unknown>>;
    readonly prompt?: unknown;
    readonly label?: unknown;
  };
  readonly ending: Ending;
  /** Reward reported by the agent itself. Null: it reported none. */
  readonly claimed: number | null;
  readonly metrics: Readonly<Record<string, number>>;
  readonly finalState?: Json;
  /** Absent if usage was not counted. */
  readonly usage?: RolloutUsage;
  readonly durationMs: number;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

export type RewardFunction = (input: RewardInput) => number | null | Promise<number | null>;

export interface RewardTerm {
  readonly name: string;
  readonly weight: number;
  /** Null: the term does not apply and is left out. */
  readonly value: RewardFunction;
  /** Represents the function in the digest. For a built-in term: its name and parameters. */
  readonly source?: Json;
  readonly version?: string;
}

export interface Scorer {
  readonly name: string;
  readonly digest: Digest;
  /** `signal` aborts when the scores are no longer needed. */
  score(input: RewardInput, signal?: AbortSignal): Promise<Score[]>;
}

/** A weighted sum of terms, clipped. The clipped amount becomes a separate term, so that the scores add up. */
export function compositeReward(options: {
  readonly name: string;
  readonly terms: readonly RewardTerm[];
  readonly clip?: readonly [number, number];
}): Scorer {
  const { name, terms, clip } = options;
  checkTerms(options);
  const digest = digestJson("rollbook.scorer.v1", {
    name,
    clip: clip === undefined ? null : [...clip],
    terms: terms.map((term) => ({
      name: term.name,
      weight: term.weight,
      source: term.source ?? term.value.toString(),
      version: term.version ?? null,
    })),
  });
  return {
    name,
    digest,
    async score(input) {
      const scores: Score[] = [];
      for (const term of terms) {
        const value = await term.value(input);
        if (value === null) continue;
        if (!Number.isFinite(value)) throw failedBy("task", `the reward term ${term.name} gave ${value}.`);
        scores.push({ name: parseId(term.name), value, weight: term.weight, scorer: digest });
      }
      const total = totalOf(scores);
      const excess =
        total === null || clip === undefined ? 0 : Math.min(clip[1], Math.max(clip[0], total)) - total;
      if (excess !== 0) scores.push({ name: parseId("clip"), value: excess, weight: 1, scorer: digest });
      if (!isReward(totalOf(scores)))
        throw failedBy("task", `the reward ${name} adds up to ${total}, more than a 32-bit float holds.`);
      return scores;
    },
  };
}

/** Makes a reward of one function. */
export function rewardOf(name: string, value: RewardFunction, options: { version?: string } = {}): Scorer {
  return compositeReward({ name, terms: [{ name, weight: 1, value, ...options }] });
}

type Weighted = { readonly weight: number };

/** 1 if `check` holds; 0 if it does not hold or the rollout failed. */
export function verificationTerm(
  check: (input: RewardInput) => boolean | Promise<boolean>,
  { weight = 1, version }: { readonly weight?: number; readonly version?: string } = {},
): RewardTerm {
  return {
    name: "verification",
    weight,
    source: { builtin: "verification", check: check.toString() },
    ...(version === undefined ? {} : { version }),
    value: async (input) => (input.ending.kind !== "failed" && (await check(input)) ? 1 : 0),
  };
}

/** −1 for a rollout that ran out of time. */
export function timeoutTerm({ weight }: Weighted): RewardTerm {
  const value: RewardFunction = ({ ending }) =>
    ending.kind === "truncated" && ending.limit === "time" ? -1 : 0;
  return builtin("timeout", { weight, value });
}

/** −1 for a failure of the agent. Failures of other owners are no evidence about the policy and cost nothing. */
export function terminalFailureTerm({ weight }: Weighted): RewardTerm {
  const value: RewardFunction = ({ ending }) =>
    ending.kind === "failed" && ending.owner === "agent" ? -1 : 0;
  return builtin("terminal-failure", { weight, value });
}

/** −1 for each attempt after the first, down to −`most`. */
export function retriesTerm({ weight, most = 3 }: Weighted & { readonly most?: number }): RewardTerm {
  return builtin("retries", {
    weight,
    parameters: { most },
    value: ({ attempt }) => 0 - Math.min(attempt - 1, most),
  });
}

/** −1 at `perUsd` dollars and above, proportional below. Null if the cost of a call is unknown. */
export function costTerm({ weight, perUsd }: Weighted & { readonly perUsd: number }): RewardTerm {
  const value: RewardFunction = ({ usage }) =>
    usage === undefined || (usage.unpriced ?? 0) > 0 ? null : 0 - Math.min(1, usage.costUsd / perUsd);
  return builtin("cost", { weight, parameters: { perUsd }, value });
}

/** −1 at `perMs` milliseconds and above, proportional below. */
export function latencyTerm({ weight, perMs }: Weighted & { readonly perMs: number }): RewardTerm {
  const value: RewardFunction = ({ durationMs }) => 0 - Math.min(1, durationMs / perMs);
  return builtin("latency", { weight, parameters: { perMs }, value });
}

function builtin(
  name: string,
  {
    weight,
    value,
    parameters = {},
  }: Weighted & { value: RewardFunction; parameters?: Record<string, number> },
): RewardTerm {
  for (const [key, number] of Object.entries(parameters))
    if (!(number > 0)) throw bad(`${name}: ${key} is ${number}, not a positive number`);
  return { name, weight, value, source: { builtin: name, ...parameters } };
}

function checkTerms({ name, terms, clip }: Parameters<typeof compositeReward>[0]): void {
  parseId(name, "name of the reward");
  const names = terms.map((term) => parseId(term.name, "name of a term") as string);
  const twice = names.find((each, i) => names.indexOf(each) !== i || each === "clip");
  if (twice !== undefined)
    throw bad(`${name}: the term ${twice} appears twice, or takes the name of the clip`);
  const heavy = terms.find(({ weight }) => !Number.isFinite(weight));
  if (heavy !== undefined) throw bad(`${name}: the weight of ${heavy.name} is ${heavy.weight}`);
  if (clip !== undefined && !(clip[0] <= clip[1])) throw bad(`${name}: clips to [${clip.join(", ")}]`);
}

function bad(problem: string): RollbookError {
  return new RollbookError("bad-reward", {}, `${problem}. Correct the reward.`);
}
