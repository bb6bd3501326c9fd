import { describe, expect, it } from "vitest";
import { loggedRow } from "../../../test/support/chain-world.ts";
import { countCpuMs } from "../../../test/support/cpu-time.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { rngFrom } from "../../base/rng.ts";
import { trainCql } from "../neural/cql.ts";
import { digestRows, type LoggedRow } from "./decision-row.ts";
import { requireWholeChains, rowsByChain, wholeChains } from "./whole-chains.ts";

const step = (id: string, chain: string, change: Partial<LoggedRow> = {}) =>
  loggedRow({
    ...{ id, chain, task: "t", chosen: 0, context: { prompt: "", fields: {} }, reward: 1 },
    ...change,
  });
const walk = (...steps: number[]) =>
  steps.map((each) => step(`w/0/${each}`, "w/0/0", { terminal: each === 2 }));
const refused = (rows: readonly LoggedRow[]) => refusalOf(() => requireWholeChains(rows, "task"));

describe("whole chains", () => {
  it("refuses a chain that lacks a step, and names the step", () => {
    expect(refused(walk(0, 2))).toMatchObject({ code: "missing-step", fields: { chain: "w/0/0", step: 1 } });
    expect(refused(walk(2, 1)).fields).toMatchObject({ step: 0 });
    expect(refused([step("w/1", "w"), step("w/3", "w")]).fields).toMatchObject({ step: 2 });
  });

  it("accepts steps in any order, from 0 or 1, and names that tell no step", () => {
    const named = [step("line-7", "episode"), step("line-90", "episode")];
    expect(() =>
      requireWholeChains([...walk(2, 0, 1), step("v/1", "v"), step("v/2", "v"), ...named], "task"),
    ).not.toThrow();
  });

  it("refuses a chain of two tasks, unless chains are the units", () => {
    const torn = walk(0, 1).map((row, i) => ({ ...row, task: `t${i}` }));
    expect(refused(torn).message).toMatch(/chain w\/0\/0 has decisions of 2 tasks \(t0, t1\)/);
    expect(() => requireWholeChains(torn, "decision")).not.toThrow();
  });

  it("leaves a chain without an outcome out as a whole, and counts its rows", () => {
    const open = walk(0, 1, 2).map((row, i) => (i === 1 ? { ...row, reward: null } : row));
    const other = step("v/0", "v");
    expect(wholeChains([...open, other], "task")).toEqual({ whole: [other], broken: 3 });
  });

  it("gathers one long chain in time that grows with its rows", () => {
    const row = step("w/0", "w");
    const rows = Array.from({ length: 200_000 }, () => row);
    const cpuMs = countCpuMs();
    expect(rowsByChain(rows).get("w")).toHaveLength(rows.length);
    // Linear work takes milliseconds; copying the list for every row takes minutes.
    expect(cpuMs()).toBeLessThan(3000);
  });

  it("no learner of chains takes a return or a next state across a missing step", () => {
    const rows = walk(0, 2);
    const data = { rows, digest: digestRows(rows) };
    for (const goal of ["return", "bootstrap"] as const)
      expect(refusalOf(() => trainCql(data, { discount: 1, goal }, rngFrom(1))).code).toBe("missing-step");
  });
});
