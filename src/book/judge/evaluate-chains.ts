/** Judges a learned policy by whole chains of decisions that it has not seen.
 *  In: a source of decisions, a checkpoint, a discount. Out: the evaluation, and the refusal where the log cannot carry one.
 *  Writes nothing. */
import { RollbookError, rngFrom } from "../../base/index.ts";
import { type ChainEvaluation, evaluateChains } from "../../judge/index.ts";
import { type SplitUnit, wholeChains } from "../../learn/index.ts";
import type { DecisionSource } from "../decisions/index.ts";
import type { JudgeRequest } from "./evaluate.ts";
import { judgeRowsOf } from "./judge-rows.ts";
import { loadPolicy, setupOf } from "./load-policy.ts";
import { loadJudgeRows } from "./load-rows.ts";
import { requireJudgeable } from "./replay-limits.ts";

interface ChainRequest extends JudgeRequest {
  readonly checkpoint: string;
  /** What a reward one decision later is worth. */
  readonly discount: number;
}

export interface JudgedChains {
  readonly evaluation: ChainEvaluation;
  readonly unit: SplitUnit;
  /** Rows the policy was trained or calibrated on. */
  readonly leftOut: number;
  /** Rows of chains that lack an outcome. */
  readonly unlabelled: number;
  readonly refusal?: RollbookError;
}

export async function evaluateOnChains(source: DecisionSource, request: ChainRequest): Promise<JudgedChains> {
  const { checkpoint, discount, seed = 0n } = request;
  const loaded = loadPolicy(checkpoint, request.spec);
  requireJudgeable(source, [loaded]);
  const { rows } = await loadJudgeRows(source, [loaded], { ...request, unlabelled: "keep" });
  const { whole, broken } = wholeChains(rows, loaded.rule.unit);
  const judged = judgeRowsOf(whole, [loaded], "id");
  const fresh = new Set(judged.rows.map(({ id }) => id));
  const setup = setupOf(loaded, { ...request, exploration: request.exploration ?? 0 });
  const evaluation = evaluateChains(
    whole.filter(({ id }) => fresh.has(id)),
    {
      ...{ setup, single: setup.single, discount, unit: loaded.rule.unit, rng: rngFrom(seed) },
      judgeShare: judged.judgeShare,
    },
  );
  const { panel } = evaluation.contenders[0]!;
  return {
    ...{ evaluation, unit: loaded.rule.unit, leftOut: whole.length - fresh.size, unlabelled: broken },
    ...(panel.kind === "refused" ? { refusal: refusalOf(panel.reasons) } : {}),
  };
}

function refusalOf(reasons: readonly string[]): RollbookError {
  return new RollbookError(
    "refused",
    { reasons },
    `the log cannot say how good the policy is over whole chains: ${reasons.join(" ")}`,
  );
}
