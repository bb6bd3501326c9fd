/** Analyses the rewards of logged decisions: their terms, and the candidates they favour.
 *  In: a source of decisions. Out: distributions, outliers, and the effect of each weight. Counts unlabelled
 *  decisions. */
import { analyzeRewards, type RewardReport, rewardedOf } from "../../judge/index.ts";
import { type DecisionSource, viewDecisions } from "../decisions/index.ts";

export async function rewardReport(
  source: DecisionSource,
  request: Parameters<typeof viewDecisions>[1],
): Promise<RewardReport & { readonly unlabelled: number }> {
  const rows = await viewDecisions(source, request);
  const report = analyzeRewards(rewardedOf(rows));
  return { unlabelled: rows.length - report.rows, ...report };
}
