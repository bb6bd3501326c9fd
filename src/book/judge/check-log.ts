/** Whether a decision log can judge a policy: its size, its propensities, and faults that no interval knows of, such as repeated
 *  rows, constant rewards, outliers and drift.
 *  In: a source of decisions. Out: the findings, by logging order of the rows. Unlabelled decisions are counted. */
import { plural } from "../../base/index.ts";
import { checkData, type DataFinding, type JudgedRow, toJudgedRows } from "../../judge/index.ts";
import { SUPPORT_LIMITS, smallLogRemedy } from "../../judge/ope/index.ts";
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
  const unit = request.unit ?? "task";
  const { rows, unlabelled } = toJudgedRows(ordered, unit);
  const units = new Set(rows.map((row) => row.unit)).size;
  const discount = hasChains(ordered) ? DEFAULT_DISCOUNT : undefined;
  // Where every outcome is known, nothing is weighed by propensities.
  const isFull = discount === undefined && rows.every(({ known }) => known !== undefined);
  const findings = [
    ...(isFull ? [] : [...missingPropensities(rows), ...tooFew(units, unit)]),
    ...checkData(rows, discount),
  ];
  return { rows: rows.length, units, unlabelled, findings };
}

function missingPropensities(rows: readonly JudgedRow[]): DataFinding[] {
  const lacking = rows.filter(({ propensity }) => propensity === null);
  if (lacking.length === 0) return [];
  const message = `${lacking.length} of ${plural(rows.length, "decision")} have no logged propensity, first ${lacking[0]!.id}: \`evaluate\` and \`gate\` refuse them. Log the probability of every choice.`;
  return [{ kind: "propensities", severity: "refuse", message }];
}

/** The effective sample size of an estimate is at most the number of units. */
function tooFew(units: number, unit: SplitUnit): DataFinding[] {
  const { effectiveSize } = SUPPORT_LIMITS;
  if (units >= effectiveSize) return [];
  const message = `${plural(units, unit)} with a reward are too few to judge by: an estimate needs an effective sample size of ${effectiveSize}. ${smallLogRemedy({ unit })}.`;
  return [{ kind: "size", severity: "refuse", message }];
}
