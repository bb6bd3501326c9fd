/** Selects the rows that may judge: rows from which no policy has learned or set its floor.
 *  In: rows of a dataset or book, policies. Out: labelled rows in the requested order, and counts of the excluded
 *  rows. */
import { compareUtf8, type Digest, RollbookError } from "../../base/index.ts";
import { SINGLE_TASK } from "../../contract/index.ts";
import { type JudgedRow, type JudgedRows, toJudgedRows } from "../../judge/index.ts";
import { judgeShareOf, type LoggedChoices, smallLogRemedy } from "../../judge/ope/index.ts";
import {
  digestRows,
  hasSeen,
  type LoggedRow,
  type SplitPart,
  type SplitRule,
  unitOf,
  wholeChains,
} from "../../learn/index.ts";
import type { LoadedPolicy } from "./load-policy.ts";

export interface JudgeRows extends JudgedRows {
  /** Digest of the rows with all measures that are judged. */
  readonly digest: Digest;
  readonly leftOut: { readonly train: number; readonly calibration: number };
  /** Rows of `leftOut` without a reward: no policy learned from them. */
  readonly leftOutUnlabelled: { readonly train: number; readonly calibration: number };
  readonly rule: SplitRule;
  /** Share of a log that the split leaves for judging. */
  readonly judgeShare: number;
  /** Choices of all rows, including those that do not judge. */
  readonly wholeLog: LoggedChoices;
}

/** `logged`: by the time of the decision. `id`: by its id, which does not depend on a clock. */
export type RowOrder = "logged" | "id";

export function judgeRowsOf(
  rows: readonly LoggedRow[],
  policies: readonly LoadedPolicy[],
  order: RowOrder = "logged",
): JudgeRows {
  const rule = commonRule(policies);
  const leftOut = { train: 0, calibration: 0 };
  const leftOutUnlabelled = { train: 0, calibration: 0 };
  const fresh: LoggedRow[] = [];
  for (const row of rows) {
    const parts = policies.map((policy) => partFor(row, policy));
    const seen = (["train", "calibration"] as const).find((part) => parts.includes(part));
    if (seen === undefined) fresh.push(row);
    else {
      leftOut[seen]++;
      if (row.reward === null) leftOutUnlabelled[seen]++;
    }
  }
  // Rows with the same time keep the order of their file, which is the order of the log.
  const ordered = fresh.sort((a, b) => (order === "logged" ? a.atMs - b.atMs : compareUtf8(a.id, b.id)));
  const judged = toJudgedRows(ordered, rule.unit);
  if (judged.rows.length === 0) throw nothingLeft(rows.length, leftOut, judged.unlabelled);
  requireUnits(judged.rows, rule);
  requireKnown(judged.rows, policies);
  const judgeShare = judgeShareOf(rule.shares, { isCalibrated: leftOut.calibration > 0 });
  const wholeLog = { rows: rows.length, chosen: choicesIn(rows) };
  const digest = digestRows(ordered, judged);
  return { ...judged, digest, leftOut, leftOutUnlabelled, rule, judgeShare, wholeLog };
}

function choicesIn(rows: readonly LoggedRow[]): Map<string, number> {
  const chosen = new Map<string, number>();
  for (const { candidates, chosen: at } of rows) {
    const { id } = candidates[at]!;
    chosen.set(id, (chosen.get(id) ?? 0) + 1);
  }
  return chosen;
}

/** With a discount, only complete chains judge. Decisions of broken chains count as unlabelled. */
export function judgeWholeRows(
  rows: readonly LoggedRow[],
  policies: readonly LoadedPolicy[],
  { discount, order }: { discount: number | undefined; order: RowOrder | undefined },
): { whole: readonly LoggedRow[]; judged: JudgeRows } {
  const { whole, broken } =
    discount === undefined ? { whole: rows, broken: 0 } : wholeChains(rows, commonRule(policies).unit);
  const judged = judgeRowsOf(whole, policies, order);
  return { whole, judged: { ...judged, unlabelled: judged.unlabelled + broken } };
}

/** Part of the split that a row has for one policy. */
function partFor(row: LoggedRow, { seen, rule }: LoadedPolicy): SplitPart {
  const unit = unitOf(row, rule.unit);
  // Policies of 0.1.0 recorded all single calls under one shared task id.
  const isSingle = rule.unit === "task" && row.chain.startsWith(`${row.task}/`);
  const names = isSingle ? [unit, SINGLE_TASK] : [unit];
  if (names.some((name) => hasSeen(seen.train, name))) return "train";
  if (names.some((name) => hasSeen(seen.calibration, name))) return "calibration";
  // A row that the policy has not seen may judge it, regardless of its part in later trainings.
  return "judge";
}

/** Split rule of the first policy. All policies must have been split by the same unit. Their shares and salts may differ:
 *  `partFor` asks each policy for the units that it has seen. The shares only estimate how many rows a log needs. */
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
    `none of the ${rows} rows can judge the policy: ${train} are for training or were trained on, ${calibration} for calibration, ${unlabelled} have no outcome. Record more tasks, name rows that the policy was not trained on, or train with a larger judge share in --split (in a loop: split.shares).`,
  );
}

/** Minimum number of units: cross-fitting divides them into three parts, and no part may be empty. */
const LEAST_UNITS = 3;

function requireUnits(rows: readonly JudgedRow[], { unit }: SplitRule): void {
  const units = new Set(rows.map((row) => row.unit)).size;
  if (units >= LEAST_UNITS) return;
  throw new RollbookError(
    "too-few-units",
    { rows: rows.length, units, unit },
    `${rows.length} labelled rows of ${units} ${unit}${units === 1 ? "" : "s"} are left to judge by, too few for an estimate. ${smallLogRemedy({ unit, counted: { rows: rows.length, units } })}.${unit === "decision" || rows.length === units ? "" : ` If many rows share one ${unit}, train with --unit decision (in a loop: \`split: { unit: decision }\`).`}`,
  );
}

/** Largest accepted mean probability on candidates that a policy does not know. */
const UNKNOWN_MASS = 0.01;

/** Refuses rows that do not fit a policy: a row without any candidate that the policy knows, or a log in which the
 *  policy prefers unknown candidates. Its preference among them depends only on their order. */
function requireKnown(rows: readonly JudgedRow[], policies: readonly LoadedPolicy[]): void {
  for (const { checkpoint, folder, policy } of policies) {
    const arms = new Set(checkpoint.model.arms);
    const foreign = new Set<string>();
    let mass = 0;
    for (const { id, context, candidates } of rows) {
      if (candidates.every((one) => arms.has(one.id))) continue;
      if (!candidates.some((one) => arms.has(one.id)))
        throw unseen({ decision: id, candidates, folder, arms });
      const { probabilities } = policy.answer(context, candidates);
      for (const [c, one] of candidates.entries()) {
        if (arms.has(one.id) || !(probabilities[c]! > 0)) continue;
        mass += probabilities[c]! / rows.length;
        foreign.add(one.id);
      }
    }
    if (mass <= UNKNOWN_MASS) continue;
    throw new RollbookError(
      "unseen-candidate",
      { folder, candidates: [...foreign], known: [...arms], mass },
      `${folder} puts ${(100 * mass).toFixed(1)} % of its probability on candidates it was not trained on (${[...foreign].slice(0, 8).join(", ")}). Judge it by rows of the same candidates, or train again.`,
    );
  }
}

function unseen(facts: {
  decision: string;
  candidates: JudgedRow["candidates"];
  folder: string;
  arms: ReadonlySet<string>;
}): RollbookError {
  const { decision, folder, arms } = facts;
  const names = facts.candidates.map(({ id }) => id);
  return new RollbookError(
    "unseen-candidate",
    { decision, candidates: names, known: [...arms] },
    `decision ${decision}: ${folder} knows none of its candidates (${names.join(", ")}); it was trained on ${[...arms].join(", ")}. Judge it by rows of the same candidates, or train again.`,
  );
}
