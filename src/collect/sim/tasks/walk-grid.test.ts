import { describe, expect, it } from "vitest";
import { countCpuMs } from "../../../../test/support/cpu-time.ts";
import { walkGrid } from "./walk-grid.ts";

/** Computed by hand: the path through both waypoints costs 10, including 3 for the mud. */
const world = { rows: ["S.1", "#~#", "2.G"], mudCost: 3, budget: 10 };

describe("walking a plan", () => {
  it.each([
    ["all waypoints, the goal and the budget", "RRLDDLRR", { passed: 4, total: 4, cost: 10 }, 10],
    ["the same way is over a budget one lower", "RRLDDLRR", { passed: 3, total: 4, cost: 10 }, 9],
    ["line breaks and spaces do not count", "RRL\nDD LRR\n", { passed: 4, total: 4, cost: 10 }, 10],
    [
      "a waypoint out of order does not count, and without it the goal does not either",
      "RDDLRR",
      { passed: 0, total: 4, cost: 8 },
      99,
    ],
    ["a wall ends the walk; what was reached stays", "RRDLLDDRR", { passed: 1, total: 4, cost: 2 }, 99],
    ["the edge ends the walk", "URRLDDLRR", { passed: 0, total: 4, cost: 0 }, 99],
    ["an unknown letter ends the walk", "RR?LDDLRR", { passed: 1, total: 4, cost: 2 }, 99],
    ["the name of something inherited is no move", "constructor", { passed: 0, total: 4, cost: 0 }, 99],
    ["no plan, no credit", "", { passed: 0, total: 4, cost: 0 }, 99],
  ])("%s", (_, plan, expected, budget) => {
    expect(walkGrid({ ...world, budget }, plan)).toEqual(expected);
  });

  it("a plan of a million moves is not walked to the end", () => {
    const cpuMs = countCpuMs();
    expect(walkGrid(world, "RL".repeat(5_000_000)).passed).toBe(0);
    expect(cpuMs()).toBeLessThan(2_000);
  });
});
