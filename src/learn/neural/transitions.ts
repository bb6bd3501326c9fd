/** Decisions in chains as the neural learners take them: state, choice, reward, what may be chosen, and what came next.
 *  In: logged rows, a feature spec. Out: columns and vectors, with an account of every row that cannot teach. Pure.
 *  A row's successor is the next decision of its chain. The end of a chain that did not end its episode (a limit, a crash)
 *  has an unknown successor: with γ > 0 nothing may be learned from it, and treating it as an ending would teach failure. */
import { RollbookError } from "../../base/index.ts";
import { type FeatureSpec, makeFeatureReader } from "../../policy/index.ts";
import {
  compareNatural,
  gatherRows,
  type LoggedRow,
  labelledRows,
  rowsByChain,
  type SparseRows,
} from "../rows/index.ts";
import { ChainColumns, type RowColumns } from "./chain-columns.ts";

export interface Transitions extends RowColumns {
  readonly states: StateRows;
}

/** The feature vectors of the rows, wherever they are. */
export interface StateRows {
  /** Length of a full vector. */
  readonly size: number;
  /** The vectors of some rows; a negative row has none. */
  block(rows: Int32Array): VectorBlock | Promise<VectorBlock>;
}

/** The vector of the r-th row asked for is row `places[r]` of `sparse`; negative: none. */
interface VectorBlock {
  readonly sparse: SparseRows;
  readonly places: Int32Array;
}

export function transitionsOf(rows: readonly LoggedRow[], spec: FeatureSpec): Transitions {
  return orderedTransitions(rows, spec).transitions;
}

/** With the rows behind the columns. */
export function orderedTransitions(
  rows: readonly LoggedRow[],
  spec: FeatureSpec,
): { transitions: Transitions; ordered: readonly LoggedRow[]; sparse: SparseRows } {
  const ordered = inChains(rows);
  const columns = new ChainColumns(rows.length - ordered.length);
  for (const chain of rowsByChain(ordered).values()) columns.add(chain);
  const reader = neuralReader(spec);
  const sparse = gatherRows(ordered, reader.size, (row) => reader.context(row.context));
  const states = { size: reader.size, block: (asked: Int32Array) => ({ sparse, places: asked }) };
  return { transitions: { ...columns.finish().columns, states }, ordered, sparse };
}

/** Reads the features of a network with one output per candidate. */
export function neuralReader(spec: FeatureSpec): ReturnType<typeof makeFeatureReader> {
  if (spec.candidate.length === 0) return makeFeatureReader(spec);
  throw new RollbookError(
    "bad-feature-spec",
    { candidate: spec.candidate },
    `the feature spec names candidate features (${spec.candidate.join(", ")}), which a network with one output per candidate does not read. Leave them out, or train bc or a linear bandit.`,
  );
}

/** The same rows with the discounted sum of rewards from each to the end of its episode for their reward. Where a chain was
 *  cut or lacks an outcome, that sum is not known, and the row has no outcome. */
export function withReturns(rows: readonly LoggedRow[], discount: number): LoggedRow[] {
  return [...rowsByChain(rows).values()].flatMap((chain) =>
    chainReturns(
      chain.sort((a, b) => compareNatural(a.id, b.id)),
      discount,
    ),
  );
}

/** Of one chain in the order of its steps. */
export function chainReturns(chain: readonly LoggedRow[], discount: number): LoggedRow[] {
  let ahead: number | null = chain.at(-1)!.terminal ? 0 : null;
  return [...chain]
    .reverse()
    .map((row) => {
      ahead = ahead === null || row.reward === null ? null : row.reward + discount * ahead;
      return { ...row, reward: ahead };
    })
    .reverse();
}

/** Labelled rows, chain by chain in the order of their steps, whatever order they came in. A chain that lacks an outcome
 *  anywhere is left out as a whole, as it is from a batch. */
export function inChains(rows: readonly LoggedRow[]): readonly LoggedRow[] {
  const labelled = labelledRows(rows);
  const known = new Set(labelled.map(({ id }) => id));
  const broken = new Set(rows.filter(({ id }) => !known.has(id)).map(({ chain }) => chain));
  const whole = labelled.filter(({ chain }) => !broken.has(chain));
  return [...whole].sort((a, b) => compareNatural(a.chain, b.chain) || compareNatural(a.id, b.id));
}
