/** Walks the facts of a segment in bounded memory: whole chains at a time, or steps with their candidates.
 *  In: a segment whose ranges (steps of chains, candidates of steps) are adjacent. Out: blocks of columns. */
import type { ColumnName, ColumnsOf } from "./schema.ts";
import type { SegmentReader } from "./segment-reader.ts";

/** A run of whole chains and their steps. */
export interface ChainWindow<C extends ColumnName<"chains">, S extends ColumnName<"steps">> {
  /** First chain and first step of the window, as rows of the segment. */
  firstChain: number;
  firstStep: number;
  stepCount: number;
  chains: ColumnsOf<"chains", C | "steps_start" | "steps_count">;
  steps: ColumnsOf<"steps", S>;
}

/** A run of steps and all their candidates. */
export interface StepWindow<S extends ColumnName<"steps">, C extends ColumnName<"candidates">> {
  firstStep: number;
  stepCount: number;
  firstCandidate: number;
  candidateCount: number;
  steps: ColumnsOf<"steps", S | "candidates_start" | "candidates_count">;
  candidates: ColumnsOf<"candidates", C>;
}

const CHAINS = 8192;
const STEPS = 65_536;
/** Candidates (including padding) of a window; a single step may have more. */
const CELLS = 1 << 18;

/** Chains in order, cut so that a window holds about `STEPS` steps; a longer chain gets its own window. */
export async function* chainWindows<C extends ColumnName<"chains">, S extends ColumnName<"steps">>(
  segment: SegmentReader,
  columns: { chains: readonly C[]; steps: readonly S[] },
): AsyncGenerator<ChainWindow<C, S>> {
  const names = [...new Set([...columns.chains, "steps_start", "steps_count"] as const)];
  for (let from = 0; from < segment.rows("chains"); from += CHAINS) {
    const to = Math.min(from + CHAINS, segment.rows("chains"));
    const block = await segment.read("chains", names, { from, to });
    for (const [low, high] of runs(block.steps_count, STEPS)) {
      const firstStep = block.steps_start[low]!;
      const stepCount = block.steps_start[high - 1]! + block.steps_count[high - 1]! - firstStep;
      yield {
        firstChain: from + low,
        firstStep,
        stepCount,
        chains: sliceColumns(block, low, high) as ChainWindow<C, S>["chains"],
        steps: await segment.read("steps", columns.steps, { from: firstStep, to: firstStep + stepCount }),
      };
    }
  }
}

export async function* stepWindows<S extends ColumnName<"steps">, C extends ColumnName<"candidates">>(
  segment: SegmentReader,
  columns: { steps: readonly S[]; candidates: readonly C[] },
): AsyncGenerator<StepWindow<S, C>> {
  const names = [...new Set([...columns.steps, "candidates_start", "candidates_count"] as const)];
  const size = Math.max(1, Math.min(STEPS, Math.floor(CELLS / Math.max(1, segment.shape.maxCandidates))));
  for (let from = 0; from < segment.rows("steps"); from += size) {
    const to = Math.min(from + size, segment.rows("steps"));
    const steps = await segment.read("steps", names, { from, to });
    const last = to - from - 1;
    const firstCandidate = steps.candidates_start[0]!;
    const end = steps.candidates_start[last]! + steps.candidates_count[last]!;
    yield {
      firstStep: from,
      stepCount: to - from,
      firstCandidate,
      candidateCount: end - firstCandidate,
      steps: steps as StepWindow<S, C>["steps"],
      candidates: await segment.read("candidates", columns.candidates, { from: firstCandidate, to: end }),
    };
  }
}

/** Splits `counts` into runs whose sum reaches `limit`. */
export function* runs(counts: ArrayLike<number>, limit: number): Generator<[low: number, high: number]> {
  let low = 0;
  let sum = 0;
  for (let i = 0; i < counts.length; i++) {
    if (i > low && sum + counts[i]! > limit) {
      yield [low, i];
      [low, sum] = [i, 0];
    }
    sum += counts[i]!;
  }
  if (low < counts.length) yield [low, counts.length];
}

/** Rows `low` … `high` of columns that hold one value per row. */
function sliceColumns(block: object, low: number, high: number): object {
  return Object.fromEntries(
    Object.entries(block).map(([name, values]: [string, Uint8Array | string[]]) => [
      name,
      Array.isArray(values) ? values.slice(low, high) : values.subarray(low, high),
    ]),
  );
}
