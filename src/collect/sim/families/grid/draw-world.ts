/** Draws grid worlds in several styles, and finds the cheapest plan by Dijkstra's algorithm. */
import type { Rng } from "../../../../base/index.ts";
import { findCell, type GridWorld } from "../../tasks/index.ts";
import { between, type Difficulty, pick } from "../family.ts";

export const STYLES = ["scattered", "corridors", "rooms", "spiral"] as const;
type Style = (typeof STYLES)[number];

export const GRID_PLAN: Readonly<
  Record<Difficulty, { size: number; waypoints: readonly number[]; mud: boolean; slack: number }>
> = {
  1: { size: 5, waypoints: [1], mud: false, slack: 4 },
  2: { size: 6, waypoints: [1, 2], mud: false, slack: 2 },
  3: { size: 8, waypoints: [2], mud: true, slack: 2 },
  4: { size: 9, waypoints: [2, 3], mud: true, slack: 1 },
  5: { size: 12, waypoints: [3, 4], mud: true, slack: 0 },
};

/** The budget is set later, once the cost of the cheapest plan is known. */
export function drawRows(rng: Rng, difficulty: Difficulty, style: Style): string[] {
  const { size, waypoints, mud } = GRID_PLAN[difficulty];
  const wide = size + rng.below(3);
  const cells = Array.from({ length: size }, (_, r) =>
    Array.from({ length: wide }, (_, c): string => (isWall(rng, style, r, c) ? "#" : ".")),
  );
  if (mud)
    for (const row of cells)
      for (const [c, cell] of row.entries()) if (cell === "." && rng.below(5) === 0) row[c] = "~";
  const free = rng.shuffle(
    cells.flatMap((row, r) => row.flatMap((cell, c) => (cell === "#" ? [] : [[r, c] as const]))),
  );
  const marks = ["S", "G", ...Array.from({ length: pick(rng, waypoints) }, (_, i) => String(i + 1))];
  for (const [i, mark] of marks.entries()) {
    const at = free[i];
    if (at !== undefined) cells[at[0]]![at[1]] = mark;
  }
  return cells.map((row) => row.join(""));
}

function isWall(rng: Rng, style: Style, row: number, column: number): boolean {
  const chance = rng.below(100);
  switch (style) {
    case "scattered":
      return chance < 24;
    case "corridors":
      return row % 2 === 1 && chance < 70;
    case "rooms":
      return (row % 4 === 3 || column % 4 === 3) && chance < 72;
    case "spiral":
      return (row + (column >> 1)) % 3 === 1 && chance < 62;
    default:
      return style satisfies never;
  }
}

const STEPS = [
  ["U", -1, 0],
  ["D", 1, 0],
  ["L", 0, -1],
  ["R", 0, 1],
] as const;

/** The cheapest moves from one cell to another. Ties go to the plan found first, in a fixed order. */
function cheapest(
  rows: readonly string[],
  { from, to, mudCost }: { from: readonly [number, number]; to: readonly [number, number]; mudCost: number },
): string | undefined {
  const best = new Map<string, { cost: number; plan: string }>([[from.join(), { cost: 0, plan: "" }]]);
  const open: [number, number][] = [[...from]];
  while (open.length > 0) {
    const costOf = (cell: readonly [number, number]) => best.get(cell.join())!.cost;
    const next = open.reduce((least, cell) => (costOf(cell) < costOf(least) ? cell : least));
    open.splice(open.indexOf(next), 1);
    const { cost, plan } = best.get(next.join())!;
    if (next.join() === to.join()) return plan;
    for (const [move, down, right] of STEPS) {
      const cell: [number, number] = [next[0] + down, next[1] + right];
      const kind = rows[cell[0]]?.[cell[1]];
      if (kind === undefined || kind === "#") continue;
      const total = cost + (kind === "~" ? mudCost : 1);
      const known = best.get(cell.join());
      if (known !== undefined && known.cost <= total) continue;
      best.set(cell.join(), { cost: total, plan: plan + move });
      open.push(cell);
    }
  }
  return undefined;
}

/** Plans a path through the marks in the given order. */
export function planThrough(
  rows: readonly string[],
  marks: readonly string[],
  mudCost: number,
): string | undefined {
  let plan = "";
  for (let i = 0; i + 1 < marks.length; i++) {
    const leg = cheapest(rows, {
      from: findCell(rows, marks[i]!),
      to: findCell(rows, marks[i + 1]!),
      mudCost,
    });
    if (leg === undefined) return undefined;
    plan += leg;
  }
  return plan;
}

export function drawMudCost(rng: Rng): number {
  return between(rng, 3, 5);
}

export function waypointsOf({ rows }: Pick<GridWorld, "rows">): string[] {
  return [...rows.join("")].filter((cell) => /[1-9]/.test(cell)).sort();
}
