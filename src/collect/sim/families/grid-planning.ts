/** A plan of moves through a grid world: waypoints in order, mud, a budget. The plan is a text file. The grader walks
 *  the plan and runs no code. The visible check is JavaScript. */
import type { Rng } from "../../../base/index.ts";
import { findCell, type GridWorld, type Mutant, walkGrid } from "../tasks/index.ts";
import { type Difficulty, type Draft, type Family, pick, type Unusable } from "./family.ts";
import { drawMudCost, drawRows, GRID_PLAN, planThrough, STYLES, waypointsOf } from "./grid/index.ts";

export const gridPlanning: Family = {
  name: "grid-planning",
  language: "javascript",
  summary: "plan moves through a grid with walls, waypoints in order, mud and a budget",
  grows:
    "grids from 5 to 12 rows, 1 to 4 waypoints, mud that makes the shortest way too dear, a tighter budget",
  structures: countStructures(),
  draw(rng, difficulty) {
    const rows = drawRows(rng, difficulty, pick(rng, STYLES));
    const mudCost = drawMudCost(rng);
    const marks = ["S", ...waypointsOf({ rows }), "G"];
    const reference = rows.join("").includes("G") ? planThrough(rows, marks, mudCost) : undefined;
    if (reference === undefined) return { unusable: "the goal cannot be reached" };
    if (reference.length < 4) return { unusable: "the way is too short" };
    const cost = walkGrid({ rows, mudCost, budget: 0 }, reference).cost;
    const world: GridWorld = { rows, mudCost, budget: cost + GRID_PLAN[difficulty].slack };
    return taskOf(rng, { world, reference, difficulty });
  },
};

function taskOf(
  rng: Rng,
  { world, reference, difficulty }: { world: GridWorld; reference: string; difficulty: Difficulty },
): Draft | Unusable {
  const mutants = mutantsOf(world, reference);
  if (mutants.length < 4) return { unusable: "too few mistakes change an answer" };
  const map = `${world.rows.join("\n")}\n`;
  // An empty plan or its first move. Empty if the goal is next to the start, because one move would arrive.
  const [start, goal] = [findCell(world.rows, "S"), findCell(world.rows, "G")];
  const beside = Math.abs(start[0] - goal[0]) + Math.abs(start[1] - goal[1]) === 1;
  const begun = rng.below(2) === 0 || beside ? "" : reference.slice(0, 1);
  return {
    visible: {
      statement: statementOf(rng, world, difficulty),
      files: {
        "map.txt": map,
        "plan.txt": begun,
        "check.mjs": CHECK,
      },
      editable: ["plan.txt"],
      check: { kind: "javascript", entry: "check.mjs" },
    },
    grading: { kind: "plan", path: "plan.txt", world },
    solutions: { reference: { "plan.txt": `${reference}\n` }, mutants },
  };
}

/** Plausible plans with a flaw. Each plan is walked, and only plans that fall short are kept. */
function mutantsOf(world: GridWorld, reference: string): Mutant[] {
  const { rows, mudCost } = world;
  const waypoints = waypointsOf(world);
  const through = (marks: readonly string[], cost = mudCost) => planThrough(rows, ["S", ...marks, "G"], cost);
  const tour = through(waypoints) ?? reference;
  const ideas: [string, string | undefined][] = [
    ["goes straight to the goal", through([])],
    ["leaves out the last waypoint", through(waypoints.slice(0, -1))],
    ["visits the waypoints in reverse order", through(waypoints.toReversed())],
    ["does not mind the mud", through(waypoints, 1)],
    ["wastes moves by going back and forth", `${tour.slice(0, 1)}${back(tour.slice(0, 1))}`.repeat(4) + tour],
    ["stops one move early", reference.slice(0, -1)],
    ["stops half-way", reference.slice(0, reference.length >> 1)],
    ["ignores the walls", straight(world)],
    ["has up and down the wrong way round", reference.replace(/[UD]/g, back)],
  ];
  const kept = new Map<string, string>();
  for (const [flaw, plan] of ideas) {
    if (plan === undefined || kept.has(plan)) continue;
    const { passed, total } = walkGrid(world, plan);
    if (passed < total) kept.set(plan, flaw);
  }
  return [...kept].slice(0, 7).map(([plan, flaw]) => ({ flaw, files: { "plan.txt": `${plan}\n` } }));
}

function back(move: string): string {
  return { U: "D", D: "U", L: "R", R: "L" }[move] ?? move;
}

/** Ignores walls and visits the waypoints in order. */
function straight(world: GridWorld): string {
  const marks = ["S", ...waypointsOf(world), "G"].map((mark) => findCell(world.rows, mark));
  return marks
    .slice(1)
    .map(([row, column], i) => {
      const [down, right] = [row - marks[i]![0], column - marks[i]![1]];
      return (down < 0 ? "U" : "D").repeat(Math.abs(down)) + (right < 0 ? "L" : "R").repeat(Math.abs(right));
    })
    .join("");
}

function statementOf(rng: Rng, world: GridWorld, difficulty: Difficulty): string {
  const waypoints = waypointsOf(world).length;
  const { mud } = GRID_PLAN[difficulty];
  const who = pick(rng, ["robot", "courier", "rover", "cat", "delivery cart", "hiker"]);
  const intro = pick(rng, [
    `Plan the way of a ${who} across the map in \`map.txt\` and write it to \`plan.txt\`.`,
    `\`map.txt\` shows where a ${who} stands (S) and where it has to go (G). Find its moves and put them into \`plan.txt\`.`,
    `A ${who} needs directions. The map is in \`map.txt\`; your moves belong into \`plan.txt\`.`,
  ]);
  const order = Array.from({ length: waypoints }, (_, i) => i + 1).join(", ");
  return [
    intro,
    "A plan is a row of letters: U, D, L and R move one cell up, down, left or right. Cells marked # are walls; a move into a wall or off the map ends the walk at once.",
    waypoints === 1
      ? "On its way from S to G it must pass the cell marked 1."
      : `On its way from S to G it must pass the numbered cells in the order ${order}. A number reached too early does not count, but the cell may be crossed.`,
    mud ? `Every step costs 1, a step onto mud (~) costs ${world.mudCost}.` : "Every step costs 1.",
    pick(rng, [
      `It has to end on G and cost no more than ${world.budget} in all.`,
      `The walk ends on G, and the total cost is at most ${world.budget}.`,
      `There is energy for a cost of ${world.budget}, and G is where the plan must end.`,
    ]),
    `The map:\n\n${world.rows.join("\n")}`,
  ].join("\n\n");
}

/** Checks only the moves and the goal. The agent must handle order, mud and budget from the statement. */
const CHECK = `// Exit code 0 means that the plan keeps to free cells and ends on the goal.
import { readFileSync } from "node:fs";

const read = (name) => readFileSync(process.cwd() + "/" + name, "utf8");
const rows = read("map.txt").trim().split("\\n");
const moves = { U: [-1, 0], D: [1, 0], L: [0, -1], R: [0, 1] };
let row = rows.findIndex((line) => line.includes("S"));
let column = rows[row].indexOf("S");
let fault;
for (const [i, move] of [...read("plan.txt").replace(/\\s+/g, "")].entries()) {
  const step = moves[move];
  const cell = step && rows[row + step[0]] && rows[row + step[0]][column + step[1]];
  if (!cell || cell === "#") {
    fault = "move " + (i + 1) + " (" + move + ") is not possible";
    break;
  }
  row += step[0];
  column += step[1];
}
if (!fault && rows[row][column] !== "G") fault = "the plan does not end on the goal";
console.log(fault ? "FAIL " + fault : "the plan can be walked and ends on the goal");
if (fault) process.exitCode = 1;
`;

function countStructures(): number {
  return Object.values(GRID_PLAN).reduce(
    (sum, { waypoints }) => sum + STYLES.length * 3 * waypoints.length,
    0,
  );
}
