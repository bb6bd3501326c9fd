/** Decisions in chains as input of the neural learners: state, choice, reward, selectable candidates, and the next
 *  state. In: logged rows, a feature spec. Out: columns and vectors, with an account of every row that cannot teach.
 *  Pure. A row's successor is the next decision of its chain. A chain that stopped before its episode ended (a limit, a
 *  crash) has an unknown successor. With γ > 0 nothing can be learned from its last row.
 *  To treat it as an end would teach failure. */
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

/** The feature vectors of the rows, in memory or in a store. */
export interface StateRows {
  /** Length of a full vector. */
  readonly size: number;
  /** The vectors of some rows. A negative row number has no vector. */
  block(rows: Int32Array): VectorBlock | Promise<VectorBlock>;
}

/** The vector of the r-th requested row is row `places[r]` of `sparse`; negative: none. */
interface VectorBlock {
  readonly sparse: SparseRows;
  readonly places: Int32Array;
}

export function transitionsOf(rows: readonly LoggedRow[], spec: FeatureSpec): Transitions {
  return orderedTransitions(rows, spec).transitions;
}

/** The transitions, with their rows in the same order. */
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

/** The same rows with the discounted sum of rewards from each row to the end of its episode as the reward. If a chain
 *  was cut or lacks an outcome, that sum is unknown, and the row has no outcome. */
export function withReturns(rows: readonly LoggedRow[], discount: number): LoggedRow[] {
  return [...rowsByChain(rows).values()].flatMap((chain) =>
    chainReturns(
      chain.sort((a, b) => compareNatural(a.id, b.id)),
      discount,
    ),
  );
}

/** The rows of one chain, in the order of its steps, with returns as rewards. */
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

/** Labelled rows, chain by chain in the order of their steps, independent of the input order. A chain that lacks any
 *  outcome is left out whole, as in a batch. */
export function inChains(rows: readonly LoggedRow[]): readonly LoggedRow[] {
  const labelled = labelledRows(rows);
  const known = new Set(labelled.map(({ id }) => id));
  const broken = new Set(rows.filter(({ id }) => !known.has(id)).map(({ chain }) => chain));
  const whole = labelled.filter(({ chain }) => !broken.has(chain));
  return [...whole].sort((a, b) => compareNatural(a.chain, b.chain) || compareNatural(a.id, b.id));
}
