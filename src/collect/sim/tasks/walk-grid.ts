/** Walks a plan of moves through a grid world. Pure.
 *  In: world and plan text. Out: the number of checks passed, and the total. Does not search for plans. */
import type { GridWorld } from "./sim-task.ts";

interface Walk {
  readonly passed: number;
  /** One check per waypoint, one for the goal, one for the budget. */
  readonly total: number;
  readonly cost: number;
}

const MOVES: Readonly<Record<string, readonly [number, number]>> = {
  U: [-1, 0],
  D: [1, 0],
  L: [0, -1],
  R: [0, 1],
};
/** No sensible plan is longer. Moves beyond this length are not read. */
const LONGEST_PLAN = 10_000;

/** Waypoints count only in their order. A move into a wall, off the grid or of an unknown letter ends the walk: reached
 *  waypoints still count, but not the goal. The budget counts only if the walk ends on the goal with every waypoint
 *  seen. */
export function walkGrid(world: GridWorld, plan: string): Walk {
  const waypoints = [...world.rows.join("")].filter((cell) => /[1-9]/.test(cell)).length;
  const total = waypoints + 2;
  let [row, column] = findCell(world.rows, "S");
  let seen = 0;
  let cost = 0;
  const moves = plan.replace(/\s+/g, "");
  for (const move of moves.slice(0, LONGEST_PLAN)) {
    const step = Object.hasOwn(MOVES, move) ? MOVES[move] : undefined;
    const cell = step === undefined ? undefined : world.rows[row + step[0]]?.[column + step[1]];
    if (step === undefined || cell === undefined || cell === "#") return { passed: seen, total, cost };
    row += step[0];
    column += step[1];
    cost += cell === "~" ? world.mudCost : 1;
    if (cell === String(seen + 1)) seen++;
  }
  const arrived = moves.length <= LONGEST_PLAN && seen === waypoints && world.rows[row]?.[column] === "G";
  const passed = seen + (arrived ? 1 : 0) + (arrived && cost <= world.budget ? 1 : 0);
  return { passed, total, cost };
}

export function findCell(rows: readonly string[], wanted: string): [number, number] {
  const row = rows.findIndex((line) => line.includes(wanted));
  return [row, row < 0 ? -1 : rows[row]!.indexOf(wanted)];
}
