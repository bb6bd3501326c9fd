/** The result of a suite. Contains digests and figures, no times and no paths: the same suite gives the same bytes. */
import type { Digest } from "../../base/index.ts";
import type { PairedDifference } from "./paired-arms.ts";

export interface ArmMeans {
  readonly reward: number;
  readonly quality: number;
  readonly costUsd: number;
  readonly latencyMs: number;
}

export interface ArmResult {
  readonly name: string;
  readonly learner: string;
  readonly floor: number;
  /** The checkpoint of each repetition. For the fitted table: the table's digest. */
  readonly checkpoints: readonly Digest[];
  /** Mean values over the played held-out tasks. */
  readonly played: ArmMeans;
  /** Exact expected means over the held-out tasks. */
  readonly exact: ArmMeans;
  /** Exact reward of every held-out task in each repetition. Other results are paired with these cells. */
  readonly cells: readonly (readonly number[])[];
  /** Share of the gap between the best single model and the optimum that the arm closes, by exact values. */
  readonly gapClosed: number;
  /** Exact reward minus the baseline's: over all repetitions, and for each repetition. */
  readonly versus: PairedDifference;
  readonly byRepetition: readonly PairedDifference[];
  /** Played reward and exact cost minus the baseline's. */
  readonly playedVersus: PairedDifference;
  readonly costVersus: PairedDifference;
}

export interface BenchResult {
  readonly schema: "rollbook.bench-result.v1";
  readonly suite: { readonly name: string; readonly digest: Digest };
  /** Digest of all tasks, models and reward weights. */
  readonly world: Digest;
  readonly tasks: { readonly train: number; readonly heldOut: number };
  readonly decisions: number;
  readonly repetitions: number;
  readonly seed: number;
  /** SHA-256 of each repetition's training log. */
  readonly logs: readonly Digest[];
  /** Exact values on the held-out tasks. */
  readonly known: {
    readonly best: number;
    readonly bestSingle: number;
    readonly uniform: number;
    readonly behaviour: number;
  };
  /** The baseline is the first arm. */
  readonly arms: readonly ArmResult[];
}
