/** Decisions in chains as the neural learners take them: state, choice, reward, what may be chosen, and what came next.
 *  In: logged rows, a feature spec. Out: columns, with an account of every row that cannot teach. Pure.
 *  A row's successor is the next decision of its chain. The end of a chain that did not end its episode (a limit, a crash)
 *  has an unknown successor: with γ > 0 nothing may be learned from it, and treating it as an ending would teach failure. */
import { RollbookError } from "../../base/index.ts";
import { type FeatureReader, type FeatureSpec, makeFeatureReader } from "../../policy/index.ts";
import {
  armsOf,
  gatherRows,
  type LoggedRow,
  labelledRows,
  rowsByChain,
  type SparseRows,
} from "../rows/index.ts";

export interface Transitions {
  readonly count: number;
  /** The rows behind the columns. */
  readonly ordered: readonly LoggedRow[];
  readonly arms: readonly string[];
  readonly reader: FeatureReader;
  readonly states: SparseRows;
  readonly action: Int32Array;
  readonly reward: Float32Array;
  /** The row that follows, `ENDED` or `CUT`. */
  readonly next: Int32Array;
  /** count × arms: 1 where the arm may be chosen. */
  readonly allowed: Float32Array;
  /** The task of each row: rows of one task are never on both sides of a split. */
  readonly unit: readonly string[];
  /** Rows without an outcome. */
  readonly unlabelled: number;
}

/** The episode ends with this row. */
export const ENDED = -1;
/** The chain stops here, its episode does not. */
export const CUT = -2;

const MOST_ARMS = 1024;

export function transitionsOf(rows: readonly LoggedRow[], spec: FeatureSpec): Transitions {
  if (spec.candidate.length > 0)
    throw new RollbookError(
      "bad-feature-spec",
      { candidate: spec.candidate },
      `the feature spec names candidate features (${spec.candidate.join(", ")}), which a network with one output per candidate does not read. Leave them out, or train bc or a linear bandit.`,
    );
  const ordered = inChains(rows);
  const arms = checkArms(armsOf(ordered));
  const places = new Map(arms.map((id, a) => [id, a]));
  const reader = makeFeatureReader(spec);
  const allowed = new Float32Array(ordered.length * arms.length);
  ordered.forEach(({ candidates }, r) => {
    for (const { id, selectable } of candidates)
      if (selectable) allowed[r * arms.length + places.get(id)!] = 1;
  });
  return {
    ...{ count: ordered.length, ordered, arms, reader, allowed },
    states: gatherRows(ordered, reader.size, (row) => reader.context(row.context)),
    action: Int32Array.from(ordered, (row) => places.get(row.candidates[row.chosen]!.id)!),
    reward: Float32Array.from(ordered, (row) => row.reward!),
    next: Int32Array.from(ordered, (row, r) =>
      ordered[r + 1]?.chain === row.chain ? r + 1 : row.terminal ? ENDED : CUT,
    ),
    unit: ordered.map((row) => row.task),
    unlabelled: rows.length - ordered.length,
  };
}

/** The same rows with the discounted sum of rewards from each to the end of its episode for their reward. Where a chain was
 *  cut or lacks an outcome, that sum is not known, and the row has no outcome. */
export function withReturns(rows: readonly LoggedRow[], discount: number): LoggedRow[] {
  return [...rowsByChain(rows).values()].flatMap((chain) => {
    const ordered = chain.sort((a, b) => compareNatural(a.id, b.id));
    let ahead: number | null = ordered.at(-1)!.terminal ? 0 : null;
    return ordered
      .reverse()
      .map((row) => {
        ahead = ahead === null || row.reward === null ? null : row.reward + discount * ahead;
        return { ...row, reward: ahead };
      })
      .reverse();
  });
}

/** Labelled rows, chain by chain in the order of their steps, whatever order they came in. A chain that lacks an outcome
 *  anywhere is left out as a whole, as it is from a batch. */
function inChains(rows: readonly LoggedRow[]): readonly LoggedRow[] {
  const labelled = labelledRows(rows);
  const known = new Set(labelled.map(({ id }) => id));
  const broken = new Set(rows.filter(({ id }) => !known.has(id)).map(({ chain }) => chain));
  const whole = labelled.filter(({ chain }) => !broken.has(chain));
  for (const row of whole)
    if (row.candidates[row.chosen]?.selectable !== true)
      throw new RollbookError(
        "bad-training-data",
        { id: row.id, chosen: row.chosen },
        `decision ${row.id} chose ${row.candidates[row.chosen]?.id}, which was not selectable. Repair the row or leave it out.`,
      );
  return [...whole].sort((a, b) => compareNatural(a.chain, b.chain) || compareNatural(a.id, b.id));
}

/** Numbers in ids compare as numbers: step 10 follows step 9. */
export function compareNatural(a: string, b: string): number {
  const [left, right] = [a.match(/\d+|\D+/g) ?? [], b.match(/\d+|\D+/g) ?? []];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [x, y] = [left[i]!, right[i]!];
    if (x === y) continue;
    const numeric = /^\d/.test(x) && /^\d/.test(y);
    if (numeric && Number(x) !== Number(y)) return Number(x) - Number(y);
    return x < y ? -1 : 1;
  }
  return left.length - right.length;
}

function checkArms(arms: readonly string[]): readonly string[] {
  if (arms.length >= 2 && arms.length <= MOST_ARMS) return arms;
  throw new RollbookError(
    "unsupported-candidates",
    { count: arms.length, most: MOST_ARMS },
    `the rows have ${arms.length} candidates in all; a network learns to choose among 2 … ${MOST_ARMS}. Filter the rows, or use a static table.`,
  );
}
