/** Logs of tiny worlds with known values: a corridor to walk, and one-step questions. */
import { rngFrom } from "../../src/base/index.ts";
import type { LoggedRow } from "../../src/learn/index.ts";

/** Number of cells of the corridor. The right end pays 1 and ends the walk; the left end pays 0.2. */
export const CELLS = 5;
const MOVES = ["left", "right"] as const;

export function loggedRow(row: Partial<LoggedRow> & Pick<LoggedRow, "id" | "context" | "chosen">): LoggedRow {
  const { id } = row;
  return {
    ...{ task: id, session: id, chain: id, family: "test", atMs: 0, source: "synthetic" },
    candidates: MOVES.map((move) => ({
      ...{ id: move, selectable: true, reasons: [], features: {}, probability: 0.5 },
    })),
    ...{ propensity: 0.5, reward: 0, terminal: true, terms: {}, rewardFrom: "test" },
    ...row,
  };
}

/** Random walks from a random cell, cut after `most` steps; a cut walk is not terminal. */
export function corridorWalks(count: number, { seed = 1, most = 12 } = {}): LoggedRow[] {
  const rng = rngFrom(seed);
  return Array.from({ length: count }, (_, walk) => {
    const rows: LoggedRow[] = [];
    let cell = rng.below(CELLS);
    for (let step = 0; step < most; step++) {
      const chosen = rng.below(2);
      const { next, reward } = walkOn(cell, chosen);
      rows.push(
        loggedRow({
          ...{ id: `walk-${walk}/0/${step}`, chain: `walk-${walk}/0/0`, task: `walk-${walk}` },
          context: { prompt: "", fields: Object.fromEntries(cellFields(cell)) },
          ...{ chosen, reward, terminal: next === undefined },
        }),
      );
      if (next === undefined) break;
      cell = next;
    }
    return rows;
  }).flat();
}

export function cellFields(cell: number): [string, number][] {
  return Array.from({ length: CELLS }, (_, i) => [`cell${i}`, i === cell ? 1 : 0]);
}

function walkOn(cell: number, move: number): { next: number | undefined; reward: number } {
  if (move === 1) return cell === CELLS - 1 ? { next: undefined, reward: 1 } : { next: cell + 1, reward: 0 };
  return cell === 0 ? { next: undefined, reward: 0.2 } : { next: cell - 1, reward: 0 };
}

/** Q* by value iteration: cells × [left, right]. */
export function corridorValues(discount: number): number[][] {
  let values = Array.from({ length: CELLS }, () => [0, 0]);
  for (let sweep = 0; sweep < 200; sweep++)
    values = values.map((_, cell) =>
      [0, 1].map((move) => {
        const { next, reward } = walkOn(cell, move);
        return reward + (next === undefined ? 0 : discount * Math.max(...values[next]!));
      }),
    );
  return values;
}
