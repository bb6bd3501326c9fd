/** Defines the facts of a run for the report. A summary of the demo has all of them; other worlds may lack exact
 *  values. */
import type {
  CostQualityPoint,
  DemoLearner,
  DemoSummary,
  DemoWindow,
  IntervalFacts,
  LedgerFacts,
  StageTime,
} from "../runs/demo-summary.ts";

export type RunLearner = Omit<DemoLearner, "exactValue"> & { readonly exactValue?: number | undefined };

export interface RunWindow
  extends Pick<DemoWindow, "index" | "collected" | "collectedBy" | "outcome" | "serves" | "refusals"> {
  readonly collectedValue?: number | undefined;
  readonly reward?: { readonly mean: number; readonly interval: IntervalFacts } | undefined;
  readonly costUsd?: number | undefined;
  readonly servedValue?: number | undefined;
  readonly learners: readonly RunLearner[];
}

export interface RunFacts extends Pick<DemoSummary, "run" | "seed" | "rollouts" | "models" | "lineage"> {
  readonly tasks?: number | undefined;
  readonly windows: readonly RunWindow[];
  readonly optimum?: number | undefined;
  readonly behaviourValue?: number | undefined;
  readonly servedValue?: number | undefined;
  readonly gapClosed?: number | undefined;
  readonly ledger: LedgerFacts;
  /** Unit of all costs here (default: USD). */
  readonly costUnit?: string | undefined;
  /** `exact` (the default) in a known world, else estimates from the log. */
  readonly costQualityBasis?: "exact" | "estimated" | undefined;
  readonly costQuality: readonly (Omit<CostQualityPoint, "reward"> & {
    readonly reward?: number | undefined;
  })[];
  readonly stages?: readonly StageTime[] | undefined;
  readonly gate: DemoSummary["gate"];
  readonly pack?: { readonly digest: string; readonly verified: boolean } | undefined;
  readonly digest?: string | undefined;
}
