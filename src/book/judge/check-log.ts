/** Checks if a decision log can judge a policy: its size, its propensities, and faults that no interval covers, such as
 *  repeated rows, constant rewards, outliers and drift.
 *  In: a source of decisions. Out: the findings, with rows in logging order. Counts unlabelled decisions. */
import { nearestName, plural } from "../../base/index.ts";
import { checkData, type DataFinding, type JudgedRow, toJudgedRows } from "../../judge/index.ts";
import { ENOUGH_UNITS, SUPPORT_LIMITS, smallLogRemedy } from "../../judge/ope/index.ts";
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
  const { rows: labelled, unlabelled } = toJudgedRows(ordered, unit);
  const rows = [...new Map(labelled.map((row) => [row.id, row])).values()];
  const units = new Set(rows.map((row) => row.unit)).size;
  const discount = hasChains(ordered) ? DEFAULT_DISCOUNT : undefined;
  // If every outcome is known, no row is weighted by propensities.
  const isFull = discount === undefined && rows.every(({ known }) => known !== undefined);
  const findings = [
    ...(isFull ? [] : [...missingPropensities(rows), ...tooFew({ rows: rows.length, units }, unit)]),
    ...sameIds(labelled, rows.length),
    ...(isFull ? [] : rareCandidates(rows)),
    ...checkData(rows, discount),
  ];
  return { rows: labelled.length, units, unlabelled, findings };
}

/** Reports a log that was imported under two families: its copies are left out of the other checks. */
function sameIds(labelled: readonly JudgedRow[], different: number): DataFinding[] {
  const copies = labelled.length - different;
  if (copies === 0) return [];
  const message = `${plural(copies, "row")} of ${labelled.length} repeat the id of another: two policy families hold the same decisions. Check one family with --family NAME.`;
  return [{ kind: "duplicates", severity: "warn", message }];
}

/** Share of the rows: a candidate with fewer choices is a misspelt name, or too rare to judge. */
const RARE = 0.01;
const FEW_CHOICES = 10;

function rareCandidates(rows: readonly JudgedRow[]): DataFinding[] {
  const times = new Map<string, number>();
  for (const { candidates, chosen } of rows) {
    const { id } = candidates[chosen]!;
    times.set(id, (times.get(id) ?? 0) + 1);
  }
  const isRare = (id: string) => times.get(id)! < Math.min(FEW_CHOICES, RARE * rows.length);
  const names = [...times.keys()];
  return names.filter(isRare).map((id) => {
    const meant = nearestName(
      id,
      names.filter((name) => !isRare(name)),
    );
    const next =
      meant === undefined
        ? "Record more choices of it"
        : `If it means ${meant}, correct the name; else record more choices of it`;
    const message = `${id} is the choice in ${times.get(id)} of ${plural(rows.length, "row")}, too few to learn from or to judge. ${next}.`;
    return { kind: "candidates", severity: "warn", message };
  });
}

function missingPropensities(rows: readonly JudgedRow[]): DataFinding[] {
  const lacking = rows.filter(({ propensity }) => propensity === null);
  if (lacking.length === 0) return [];
  const message = `${lacking.length} of ${plural(rows.length, "decision")} have no logged propensity, first ${lacking[0]!.id}: \`evaluate\` and \`gate\` refuse them. Log the probability of every choice.`;
  return [{ kind: "propensities", severity: "refuse", message }];
}

/** The effective sample size of an estimate is at most the number of units. */
function tooFew(counted: { rows: number; units: number }, unit: SplitUnit): DataFinding[] {
  const { units } = counted;
  const { effectiveSize } = SUPPORT_LIMITS;
  if (units >= ENOUGH_UNITS) return [];
  if (units >= effectiveSize)
    return [
      {
        ...{ kind: "size", severity: "warn" },
        message: `only ${plural(units, unit)} with a reward. ${smallLogRemedy({ unit, counted })}.`,
      },
    ];
  const message = `${plural(units, unit)} with a reward are too few to judge by: an estimate needs an effective sample size of ${effectiveSize}. ${smallLogRemedy({ unit, counted })}.`;
  return [{ kind: "size", severity: "refuse", message }];
}
