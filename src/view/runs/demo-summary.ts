/** Defines the facts of a finished loop: the terminal summary and the HTML report are rendered from them alone. Every
 *  number comes from sealed records of the book, except the measured times. */
import type { LineageEdge, LineageNode } from "../charts/index.ts";

export interface IntervalFacts {
  readonly low: number;
  readonly high: number;
  /** Confidence level of the interval, e.g. 0.95. */
  readonly level: number;
}

export interface DemoWindow {
  /** Window number, from 1. */
  readonly index: number;
  /** Rollouts of this window. */
  readonly collected: number;
  /** Name of the policy that collected. */
  readonly collectedBy: string;
  /** Exact expected reward of the policy that collected, with its exploration. */
  readonly collectedValue: number;
  /** Observed mean reward of the window's rollouts. */
  readonly reward: { readonly mean: number; readonly interval: IntervalFacts };
  /** Observed mean cost of a rollout, in US dollars. */
  readonly costUsd: number;
  readonly outcome: "released" | "kept";
  /** Policy that serves after the window. */
  readonly serves: string;
  /** Exact expected reward of that policy, with the exploration of serving. */
  readonly servedValue: number;
  /** Refusals of the gate in this window: one entry for each refused learner. */
  readonly refusals: readonly DemoRefusal[];
  readonly learners: readonly DemoLearner[];
}

interface DemoRefusal {
  readonly learner: string;
  readonly reasons: readonly string[];
}

export interface DemoLearner {
  /** Name of the learner, e.g. `linucb`. */
  readonly name: string;
  readonly revision: string;
  /** Off-policy estimate of the reward, from held-out rows; absent if the log cannot support one. */
  readonly estimate?: number | undefined;
  readonly interval?: IntervalFacts | undefined;
  /** Exact expected reward, with the exploration of serving. */
  readonly exactValue: number;
  readonly passed: boolean;
  /** True if the window released this policy. */
  readonly released: boolean;
}

/** Admitted and excluded rollouts; their counts add up to `considered`. */
export interface LedgerFacts {
  /** Rollouts that the loop considered. */
  readonly considered: number;
  /** Admitted rollouts, by use. */
  readonly admitted: readonly {
    readonly use: "train" | "calibration" | "judge";
    readonly rollouts: number;
  }[];
  readonly excluded: readonly { readonly reason: string; readonly rollouts: number }[];
}

/** Policy with its exact expected cost, quality and reward. */
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
  /** 0 for steps outside the windows: generating tasks, replay store, pack. */
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
  /** Learners of the last window. */
  readonly learners: readonly DemoLearner[];
  readonly ledger: LedgerFacts;
  readonly lineage: { readonly nodes: readonly LineageNode[]; readonly edges: readonly LineageEdge[] };
  readonly costQuality: readonly CostQualityPoint[];
  readonly stages: readonly StageTime[];
  /** Rules of the gate as applied. */
  readonly gate: {
    readonly alpha: number;
    readonly epsilonQuality: number;
    /** Null if the gate judges quality alone. */
    readonly epsilonCost: number | null;
  };
  /** Mean reward of each model over its choices, from the reward analysis. */
  readonly rewardAnalysis: readonly { readonly model: string; readonly value: number }[];
  readonly replay: { readonly path: string; readonly chains: number; readonly valid: boolean };
  readonly pack: { readonly path: string; readonly digest: string; readonly verified: boolean };
  /** Digest that commits to the whole run. */
  readonly digest: string;
}
