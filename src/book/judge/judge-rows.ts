/** The rows that may judge: those of the judge split that none of the policies has learned or set its floor from.
 *  In: rows of a dataset or book, policies. Out: labelled rows in the order asked for, and what was left out. */
import { compareUtf8, type Digest, RollbookError } from "../../base/index.ts";
import { type JudgedRow, toJudgedRows } from "../../judge/index.ts";
import {
  digestRows,
  hasSeen,
  type LoggedRow,
  partOf,
  type SplitPart,
  type SplitRule,
  unitOf,
} from "../../learn/index.ts";
import type { LoadedPolicy } from "./load-policy.ts";

export interface JudgeRows {
  readonly rows: readonly JudgedRow[];
  readonly digest: Digest;
  readonly unlabelled: number;
  readonly leftOut: { readonly train: number; readonly calibration: number };
  readonly rule: SplitRule;
}

/** `logged`: by the time of the decision; `id`: by its id, which no clock can change. */
export type RowOrder = "logged" | "id";

export function judgeRowsOf(
  rows: readonly LoggedRow[],
  policies: readonly LoadedPolicy[],
  order: RowOrder = "logged",
): JudgeRows {
  const rule = commonRule(policies);
  const leftOut = { train: 0, calibration: 0 };
  const fresh: LoggedRow[] = [];
  for (const row of rows) {
    const parts = policies.map((policy) => partFor(unitOf(row, rule.unit), policy));
    if (parts.includes("train")) leftOut.train++;
    else if (parts.includes("calibration")) leftOut.calibration++;
    else fresh.push(row);
  }
  const time = ({ atMs }: LoggedRow) => (order === "logged" ? atMs : 0);
  const ordered = fresh.sort((a, b) => time(a) - time(b) || compareUtf8(a.id, b.id));
  const judged = toJudgedRows(ordered, rule.unit);
  if (judged.rows.length === 0) throw nothingLeft(rows.length, leftOut, judged.unlabelled);
  requireUnits(judged.rows, rule);
  requireKnown(judged.rows, policies);
  return { ...judged, digest: digestRows(ordered), leftOut, rule };
}

/** What a unit is to one policy. Seen is seen, whatever the rule says. */
function partFor(unit: string, { rule, seen }: LoadedPolicy): SplitPart {
  if (hasSeen(seen.train, unit)) return "train";
  if (hasSeen(seen.calibration, unit)) return "calibration";
  // One that was trained on everything there was may be judged by what came later.
  return rule.shares[2] === 0 ? "judge" : partOf(unit, rule);
}

function commonRule(policies: readonly LoadedPolicy[]): SplitRule {
  const { rule, folder } = policies[0]!;
  const other = policies.find((each) => each.rule.unit !== rule.unit);
  if (other === undefined) return rule;
  throw new RollbookError(
    "bad-split",
    { units: [rule.unit, other.rule.unit] },
    `${folder} was split by ${rule.unit}, ${other.folder} by ${other.rule.unit}: no row is known to be new to both. Train both with one --unit.`,
  );
}

function nothingLeft(
  rows: number,
  { train, calibration }: JudgeRows["leftOut"],
  unlabelled: number,
): RollbookError {
  return new RollbookError(
    "empty-split",
    { rows, train, calibration, unlabelled },
    `none of the ${rows} rows may judge: ${train} are for training or were trained on, ${calibration} for calibration, ${unlabelled} have no outcome. Give rows the policy has not seen, or train with a judge share in --split.`,
  );
}

/** Cross-fitting deals units into three parts, none of which may be empty. */
const LEAST_UNITS = 3;

function requireUnits(rows: readonly JudgedRow[], { unit }: SplitRule): void {
  const units = new Set(rows.map((row) => row.unit)).size;
  if (units >= LEAST_UNITS) return;
  throw new RollbookError(
    "too-few-units",
    { rows: rows.length, units, unit },
    `${rows.length} labelled rows in ${units} units (by ${unit}) are left to judge by, and an estimate needs at least ${LEAST_UNITS} units. Log more, or train with another --unit.`,
  );
}

/** A row none of whose candidates a policy knows is a row of another world. */
function requireKnown(rows: readonly JudgedRow[], policies: readonly LoadedPolicy[]): void {
  for (const { checkpoint, folder } of policies) {
    const arms = new Set(checkpoint.model.arms);
    const row = rows.find(({ candidates }) => !candidates.some(({ id }) => arms.has(id)));
    if (row === undefined) continue;
    const names = row.candidates.map(({ id }) => id);
    throw new RollbookError(
      "unseen-candidate",
      { decision: row.id, candidates: names, known: [...arms] },
      `decision ${row.id}: ${folder} knows none of its candidates (${names.join(", ")}); it was trained on ${[...arms].join(", ")}. Judge it by rows of the same candidates, or train again.`,
    );
  }
}
