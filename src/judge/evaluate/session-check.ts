/** Tests if decisions of one session are independent, when they count as separate units.
 *  In: labelled rows in logging order. Out: evidence of dependence. Pure.
 *  There are two signs. A decision repeats the previous choice of its session more often than its probabilities allow:
 *  the session was routed as a whole. Or rewards of one session are correlated, so sessions vary far more than their
 *  decisions. Samples of one request share its difficulty by design, so they are not evidence about their session. */
import type { JudgedRow } from "./judged-row.ts";

export interface SessionDependence {
  readonly kind: "choices" | "rewards";
  /** Number of decisions (for returns: chains) that follow another of their session. */
  readonly pairs: number;
  readonly z: number;
}

/** Independent decisions give a variance ratio of 1. Beyond this ratio, intervals are too narrow by at least √2. */
const MOST_RATIO = 2;

/** With fewer sessions, a difference may also be drift. */
const LEAST_SESSIONS = 10;

/** `far`: larger z-scores are not chance. `outcomes`: the rows; for chains, one row with the return of each chain. */
export function sessionDependence(
  rows: readonly JudgedRow[],
  { outcomes, far }: { outcomes: readonly JudgedRow[]; far: number },
): SessionDependence | undefined {
  const following = pairsOf(rows);
  const choices = scoreOf(following.flatMap(([before, row]) => repetition(before, row)));
  if (choices > far) return { kind: "choices", pairs: following.length, z: choices };
  const pairs = pairsOf(outcomes).filter(([before, row]) => requestOf(before) !== requestOf(row));
  const residual = residuals(outcomes);
  const rewards = scoreOf(pairs.map(([before, row]) => residual.get(before)! * residual.get(row)!));
  if (rewards > far && varianceRatio(outcomes, residual) > MOST_RATIO)
    return { kind: "rewards", pairs: pairs.length, z: rewards };
  return undefined;
}

type RowPair = readonly [before: JudgedRow, row: JudgedRow];

/** Each row with the previous row of its session, if that row belongs to another unit. */
function pairsOf(rows: readonly JudgedRow[]): RowPair[] {
  const last = new Map<string, JudgedRow>();
  return rows.flatMap((row): RowPair[] => {
    if (row.session === undefined) return [];
    const before = last.get(row.session);
    last.set(row.session, row);
    return before === undefined || before.unit === row.unit ? [] : [[before, row]];
  });
}

function requestOf({ context: { prompt, fields } }: JudgedRow): string {
  return prompt === "" ? JSON.stringify(fields) : prompt;
}

/** 1{the same choice}/p − 1. Its expectation is 0 if p is the probability of an independent choice. */
function repetition(before: JudgedRow, row: JudgedRow): number[] {
  const { id } = before.candidates[before.chosen]!;
  const isOffered = row.candidates.some((one) => one.id === id && one.selectable);
  if (!isOffered || row.propensity === null) return [];
  return [row.candidates[row.chosen]!.id === id ? 1 / row.propensity - 1 : -1];
}

/** Σx / √Σx²: approximately standard normal if the terms have mean 0. */
function scoreOf(terms: readonly number[]): number {
  let [sum, squares] = [0, 0];
  for (const each of terms) {
    sum += each;
    squares += each * each;
  }
  return squares === 0 ? 0 : sum / Math.sqrt(squares);
}

/** Rewards minus the mean of the chosen candidate. */
function residuals(rows: readonly JudgedRow[]): Map<JudgedRow, number> {
  const sums = new Map<string, { sum: number; count: number }>();
  for (const row of rows) {
    const { id } = row.candidates[row.chosen]!;
    const own = sums.get(id) ?? { sum: 0, count: 0 };
    sums.set(id, { sum: own.sum + row.reward, count: own.count + 1 });
  }
  return new Map(
    rows.map((row) => {
      const { sum, count } = sums.get(row.candidates[row.chosen]!.id)!;
      return [row, row.reward - sum / count];
    }),
  );
}

/** Variance of the sums over sessions, divided by the variance of the sums over units. */
function varianceRatio(rows: readonly JudgedRow[], residual: ReadonlyMap<JudgedRow, number>): number {
  const [session, unit] = [new Map<string, number>(), new Map<string, number>()];
  for (const row of rows) {
    const key = row.session ?? row.unit;
    session.set(key, (session.get(key) ?? 0) + residual.get(row)!);
    unit.set(row.unit, (unit.get(row.unit) ?? 0) + residual.get(row)!);
  }
  const squares = (sums: Map<string, number>) =>
    [...sums.values()].reduce((sum, each) => sum + each * each, 0);
  return session.size < LEAST_SESSIONS || squares(unit) === 0 ? 1 : squares(session) / squares(unit);
}
