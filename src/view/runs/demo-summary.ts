/** What a finished loop shows, in plain facts: the terminal summary and the HTML report are rendered from this alone.
 *  Every number comes from sealed records of the book, but the times, which are measured. */
import type { LineageEdge, LineageNode } from "../charts/index.ts";

export interface IntervalFacts {
  readonly low: number;
  readonly high: number;
  /** Confidence level of the interval, e.g. 0.95. */
  readonly level: number;
}

export interface DemoWindow {
  /** From 1. */
  readonly index: number;
  /** Rollouts of this window. */
  readonly collected: number;
  /** The name of the policy that collected. */
  readonly collectedBy: string;
  /** Exact expected reward of the policy that collected, with its exploration. */
  readonly collectedValue: number;
  /** Observed mean reward of the window's rollouts. */
  readonly reward: { readonly mean: number; readonly interval: IntervalFacts };
  /** Observed mean cost of a rollout, in US dollars. */
  readonly costUsd: number;
  readonly outcome: "released" | "kept";
  /** The policy that serves after the window. */
  readonly serves: string;
  /** Exact expected reward of that policy, with the exploration of serving. */
  readonly servedValue: number;
  /** What the gate refused in this window, and why: one entry for each refused learner. */
  readonly refusals: readonly DemoRefusal[];
  readonly learners: readonly DemoLearner[];
}

export interface DemoRefusal {
  readonly learner: string;
  readonly reasons: readonly string[];
}

export interface DemoLearner {
  /** E.g. `linucb`. */
  readonly name: string;
  readonly revision: string;
  /** Off-policy estimate of the reward, from held-out rows; absent where the log cannot say. */
  readonly estimate?: number | undefined;
  readonly interval?: IntervalFacts | undefined;
  /** Exact expected reward, with the exploration of serving. */
  readonly exactValue: number;
  readonly passed: boolean;
  /** Whether this is the policy that the window released. */
  readonly released: boolean;
}

/** One cause of loss; the counts of all rows add up to `considered`. */
export interface LedgerFacts {
  /** Rollouts that the loop looked at. */
  readonly considered: number;
  /** Rollouts that were admitted, by what they are used for. */
  readonly admitted: readonly {
    readonly use: "train" | "calibration" | "judge";
    readonly rollouts: number;
  }[];
  readonly excluded: readonly { readonly reason: string; readonly rollouts: number }[];
}

/** A policy by what it costs and what it earns; exact expectations. */
export interface CostQualityPoint {
  readonly name: string;
  readonly kind: "model" | "behaviour" | "served" | "candidate" | "optimum";
  /** Expected cost of a rollout, in US dollars. */
  readonly costUsd: number;
  /** Expected share of hidden checks passed. */
  readonly quality: number;
  /** Expected reward. */
  readonly reward: number;
}

export interface StageTime {
  /** 0 for what happens once: generating tasks, replay store, pack. */
  readonly window: number;
  readonly stage: string;
  readonly ms: number;
}

export interface DemoSummary {
  readonly run: string;
  readonly seed: number;
  readonly rollouts: number;
  readonly tasks: number;
  readonly models: readonly string[];
  readonly windows: readonly DemoWindow[];
  /** Exact value of the best policy. */
  readonly optimum: number;
  /** Exact value of the policy that collected window 1. */
  readonly behaviourValue: number;
  /** Exact value of the policy that serves at the end. */
  readonly servedValue: number;
  /** (servedValue − behaviourValue) / (optimum − behaviourValue). */
  readonly gapClosed: number;
  /** Of the last window. */
  readonly learners: readonly DemoLearner[];
  readonly ledger: LedgerFacts;
  readonly lineage: { readonly nodes: readonly LineageNode[]; readonly edges: readonly LineageEdge[] };
  readonly costQuality: readonly CostQualityPoint[];
  readonly stages: readonly StageTime[];
  /** Rules of the gate as they were applied. */
  readonly gate: {
    readonly alpha: number;
    readonly epsilonQuality: number;
    /** Null: the gate asks of quality alone. */
    readonly epsilonCost: number | null;
  };
  /** Mean reward of each model where it was chosen, from the reward analysis. */
  readonly rewardAnalysis: readonly { readonly model: string; readonly value: number }[];
  readonly replay: { readonly path: string; readonly chains: number; readonly valid: boolean };
  readonly pack: { readonly path: string; readonly digest: string; readonly verified: boolean };
  /** Commits to the whole run. */
  readonly digest: string;
}
