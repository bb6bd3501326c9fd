import { describe, expect, it } from "vitest";
import { decisionWorld, promptOf } from "../../../test/support/decision-world.ts";
import { parseStaticTable } from "../../policy/static-table.ts";
import { fitStaticTable } from "./fit-table.ts";

describe("the fitted static table", () => {
  const data = decisionWorld(2000, 3);

  it("finds the fact that decides, and parses as a table a person could have written", () => {
    const { source, singles } = fitStaticTable(data);
    const table = parseStaticTable(JSON.stringify(source), "fitted", ["large", "small"]);
    const { candidates } = data.rows[0]!;
    const choice = (hard: boolean) =>
      candidates[table.choose({ prompt: promptOf(hard, 900), fields: { hard } }, candidates)]!.id;
    expect([choice(true), choice(false)]).toEqual(["large", "small"]);
    // By hand: large 0.7 everywhere; small (0.2 + 0.9) / 2.
    expect(singles.map(({ id }) => id)).toEqual(["large", "small"]);
    expect(singles[0]!.value).toBeCloseTo(0.7, 1);
    expect(singles[1]!.value).toBeCloseTo(0.55, 1);
  });

  it("finds a threshold of the prompt's length where no field helps", () => {
    const rows = data.rows.map((row) => ({ ...row, context: { ...row.context, fields: {} } }));
    const { source } = fitStaticTable({ rows });
    const table = parseStaticTable(JSON.stringify(source), "fitted");
    const { candidates } = rows[0]!;
    const right = rows.filter((row) => {
      const best = row.context.prompt.startsWith("Prove") ? "large" : "small";
      return candidates[table.choose(row.context, candidates)]!.id === best;
    });
    expect(right.length / rows.length).toBeGreaterThan(0.99);
  });

  it("writes no rule for noise, and is the same whatever order the rows come in", () => {
    const noise = data.rows.map((row, i) => ({ ...row, reward: ((i * 7919) % 100) / 100 }));
    expect(fitStaticTable({ rows: noise }).source.rules.length).toBeLessThanOrEqual(4);
    expect(fitStaticTable({ rows: [...data.rows].reverse() })).toEqual(fitStaticTable(data));
  });
});
