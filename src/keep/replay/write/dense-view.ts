/** Builds the dense view `q_h` from the facts: the outcome per state, and masks, labels and probabilities per
 *  candidate.
 *  In: windows of steps and candidates. Out: columns of q_h. Linear in the number of candidates and padding. Pure:
 *  writer and validator call the same functions, so a stored view either equals the facts or is wrong. */

import {
  type ChainWindow,
  type ColumnsOf,
  columnOf,
  type Returns,
  type StepWindow,
} from "../tables/index.ts";
import { emptyValues, type NumericValues } from "../zarr/index.ts";

export const STATE_COLUMNS = [
  ...(["step", "chain", "source", "target", "candidate_count", "selected_index", "reward"] as const),
  ...(["return_to_go", "discount", "terminal", "truncated", "next_state"] as const),
] as const;
export const CELL_COLUMNS = [
  ...(["candidate", "selectable", "labelled", "trainable", "selected", "label", "probability"] as const),
] as const;

export const STATE_NEEDS = {
  chains: ["target"],
  steps: [
    ...(["chain", "parent", "source", "candidates_start", "candidates_count", "selected"] as const),
    ...(["reward", "gain", "terminal", "truncated"] as const),
  ],
} as const;
export const CELL_NEEDS = {
  steps: [],
  candidates: ["selectable", "labelled", "trainable", "selected", "label", "probability"],
} as const;

type StateBlock = ColumnsOf<"q_h", (typeof STATE_COLUMNS)[number]>;
type CellBlock = ColumnsOf<"q_h", (typeof CELL_COLUMNS)[number]>;
type StateFacts = ChainWindow<(typeof STATE_NEEDS.chains)[number], (typeof STATE_NEEDS.steps)[number]>;
type CellFacts = StepWindow<never, (typeof CELL_NEEDS.candidates)[number]>;

/** One row per step. A window holds whole chains, so every continuation of a step is in it. */
export function buildStates(window: StateFacts, { semantics, gamma }: Returns): StateBlock {
  const { firstStep, stepCount, firstChain, steps, chains } = window;
  const block: StateBlock = {
    step: Int32Array.from({ length: stepCount }, (_, i) => firstStep + i),
    chain: steps.chain.slice(),
    source: steps.source.slice(),
    target: steps.chain.map((chain) => chains.target[chain - firstChain] ?? -1),
    candidate_count: steps.candidates_count.slice(),
    selected_index: steps.selected.map((row, i) => row - steps.candidates_start[i]!),
    reward: (semantics === "root-gain" ? steps.gain : steps.reward).slice(),
    return_to_go: new Float64Array(stepCount),
    discount: Float64Array.from(steps.terminal, (terminal) => (terminal === 1 ? 0 : gamma)),
    terminal: steps.terminal.slice(),
    truncated: steps.truncated.slice(),
    next_state: new Int32Array(stepCount).fill(-1),
  };
  const { next_state, return_to_go, reward, discount } = block;
  // Backwards, so that the first continuation wins.
  for (let i = stepCount - 1; i >= 0; i--) {
    const parent = steps.parent[i]! - firstStep;
    if (parent >= 0 && parent < stepCount) next_state[parent] = firstStep + i;
  }
  for (let i = stepCount - 1; i >= 0; i--) {
    const next = next_state[i]! - firstStep;
    const sum = next > i ? reward[i]! + discount[i]! * return_to_go[next]! : reward[i]!;
    return_to_go[i] = Number.isNaN(sum) ? Number.NaN : sum;
  }
  return block;
}

/** `width` cells per step: its candidates, then padding. */
export function buildCells(window: CellFacts, width: number): CellBlock {
  const { stepCount, firstCandidate, steps, candidates } = window;
  const cells = stepCount * width;
  const block = Object.fromEntries(CELL_COLUMNS.map((name) => [name, padding(name, cells)])) as CellBlock;
  const { candidates_start: starts, candidates_count: counts } = steps;
  for (let i = 0; i < stepCount; i++) {
    const end = starts[i]! + Math.min(counts[i]!, width);
    for (let row = starts[i]!, cell = i * width; row < end; row++, cell++) {
      const from = row - firstCandidate;
      block.candidate[cell] = row;
      block.selectable[cell] = candidates.selectable[from]!;
      block.labelled[cell] = candidates.labelled[from]!;
      block.trainable[cell] = candidates.trainable[from]!;
      block.selected[cell] = candidates.selected[from]!;
      block.label[cell] = candidates.label[from]!;
      block.probability[cell] = candidates.probability[from]!;
    }
  }
  return block;
}

function padding(column: (typeof CELL_COLUMNS)[number], cells: number): NumericValues {
  const { dtype, pad } = columnOf("q_h", column);
  return (emptyValues(dtype, cells) as NumericValues).fill(pad as never);
}
