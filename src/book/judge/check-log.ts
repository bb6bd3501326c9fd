/** Faults of a decision log that no interval knows of: repeated rows, constant rewards, outliers, drift, wrong propensities.
 *  In: a source of decisions. Out: the findings, by logging order of the rows. Unlabelled decisions are counted. */
import { checkData, type DataFinding, toJudgedRows } from "../../judge/index.ts";
import { DEFAULT_DISCOUNT, hasChains, type SplitUnit } from "../../learn/index.ts";
import { type DecisionSource, requireDecisions, viewDecisions } from "../decisions/index.ts";

export interface LogCheck {
  readonly rows: number;
  readonly units: number;
  readonly unlabelled: number;
  readonly findings: readonly DataFinding[];
}

export async function checkLog(
  source: DecisionSource,
  request: Parameters<typeof viewDecisions>[1] & { readonly unit?: SplitUnit | undefined },
): Promise<LogCheck> {
  const logged = requireDecisions(await viewDecisions(source, request));
  const ordered = [...logged].sort((a, b) => a.atMs - b.atMs);
  const { rows, unlabelled } = toJudgedRows(ordered, request.unit ?? "task");
  return {
    rows: rows.length,
    units: new Set(rows.map(({ unit }) => unit)).size,
    unlabelled,
    findings: checkData(rows, hasChains(ordered) ? DEFAULT_DISCOUNT : undefined),
  };
}
