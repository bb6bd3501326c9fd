import { join } from "node:path";
import { expect, it } from "vitest";
import { Cli, lines } from "../../../test/support/cli.ts";
import { decisionLine } from "../../../test/support/decision-lines.ts";
import { logWarnings } from "./log-warnings.ts";

it("a log with enough units and a choice is not warned of; an empty one is small", () => {
  expect(
    logWarnings({ rows: 2000, units: 1000, candidates: 2, leastPropensity: 0.1, purpose: "dataset" }),
  ).toEqual([]);
  expect(
    logWarnings({ rows: 2000, units: 600, candidates: 2, leastPropensity: 0.1, purpose: "train" }),
  ).toEqual([]);
  expect(
    logWarnings({ rows: 2000, units: 999, candidates: 2, leastPropensity: 0.1, purpose: "dataset" }),
  ).toHaveLength(1);
  expect(
    logWarnings({ rows: 2000, units: 0, candidates: 0, leastPropensity: null, purpose: "dataset" }),
  ).toHaveLength(1);
});

it("train and data export count tasks, not rows, and say when there was no choice", async () => {
  const cli = new Cli();
  await cli.ok("init");
  const alone = Array.from({ length: 1200 }, (_, i) => {
    const row = decisionLine(`d-${i}`, { task: `t-${i % 2}`, reward: i % 3 }) as {
      state: { candidates: object[] };
    };
    const candidates = [{ ...row.state.candidates[0], probability: 1 }];
    return { ...row, propensity: 1, state: { ...row.state, candidates } };
  });
  const log = cli.file("alone.jsonl", lines(...alone));
  const told = await cli.run(`train ucb --data ${log} --split all --out ${join(cli.folder, "p")} --id r-1`);
  expect(told.code).toBe(0);
  expect(told.err).toMatch(
    /warning: every decision had one candidate.*\nwarning: only 2 tasks to learn from. Record about 1000/,
  );
  await cli.ok(`data import ${cli.file("few.jsonl", lines(...alone.slice(0, 6)))}`);
  const exported = await cli.run(`data export --out ${join(cli.folder, "out.jsonl")}`);
  expect(exported.err).toMatch(
    /warning: every decision had one candidate.*\nwarning: only 2 tasks. Record about 1000/,
  );
});
