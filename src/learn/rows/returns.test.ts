import { describe, expect, it } from "vitest";
import { loggedRow } from "../../../test/support/chain-world.ts";
import type { LoggedRow } from "./decision-row.ts";
import { outcomesOf } from "./outcomes.ts";
import { floorDiscount, hasChains, returnDiscount, returnsToGo } from "./returns.ts";

const context = { prompt: "", fields: {} };
const step = (chain: string, index: number, change: Partial<LoggedRow> = {}) =>
  loggedRow({ ...{ id: `${chain}/0/${index}`, chain: `${chain}/0/0`, context, chosen: 0 }, ...change });

const priced = (row: LoggedRow, prices: readonly (number | undefined)[]): LoggedRow => ({
  ...row,
  candidates: row.candidates.map((one, c) => ({
    ...one,
    features: prices[c] === undefined ? {} : { price: prices[c] },
  })),
});

describe("returns to go", () => {
  it("are by hand: 0.25, 0.5 and 1 at a discount of one half, in whatever order the steps come", () => {
    const rows = [step("b", 0, { reward: 3 }), step("a", 2, { reward: 1 }), step("a", 0), step("a", 1)];
    expect(returnsToGo(rows, 0.5).map(({ id, reward }) => [id, reward])).toEqual([
      ["b/0/0", 3],
      ["a/0/2", 1],
      ["a/0/0", 0.25],
      ["a/0/1", 0.5],
    ]);
  });

  it("add up terms and bills as they add up rewards", () => {
    const rows = [
      step("a", 0, { costUsd: 1, terms: { cost: { value: 2, weight: -1 } }, reward: -2 }),
      step("a", 1, {
        ...{ costUsd: 4, reward: 0.5 },
        terms: { cost: { value: 0.5, weight: -1 }, quality: { value: 1, weight: 1 } },
      }),
    ];
    expect(returnsToGo(rows, 1)[0]).toMatchObject({
      ...{ reward: -1.5, costUsd: 5 },
      terms: { cost: { value: 2.5, weight: -1 }, quality: { value: 1, weight: 1 } },
    });
  });

  it("add up the prices of the choices: a cost weight learns the cost that the gate judges", () => {
    const rows = [0, 1, 1].map((chosen, s) => priced(step("a", s, { chosen }), [1, 10]));
    const costs = (log: readonly LoggedRow[]) => [...outcomesOf(log, "cost").target];
    expect(costs(returnsToGo(rows, 1))).toEqual([21, 20, 10]);
    expect(costs(returnsToGo(rows, 0.5))).toEqual([8.5, 15, 10]);
    expect(costs(rows)).toEqual([1, 10, 10]);
    // A sum that lacks a price is not a cost.
    const lacking = rows.with(2, step("a", 2, { chosen: 1 }));
    expect(() => costs(returnsToGo(lacking, 1))).toThrow(/a\/0\/0 has no cost/);
  });

  it("are unknown before a step without an outcome, and after it known", () => {
    const rows = [step("a", 0, { reward: 1 }), step("a", 1, { reward: null }), step("a", 2, { reward: 2 })];
    expect(returnsToGo(rows, 1).map(({ reward }) => reward)).toEqual([null, null, 2]);
  });

  it("leave a log of single decisions as it is, and any log at discount 0", () => {
    const single = [step("a", 0), step("b", 0)];
    expect([hasChains(single), returnsToGo(single, 1) === single]).toEqual([false, true]);
    const chain = [step("a", 0), step("a", 1)];
    expect([hasChains(chain), returnsToGo(chain, 0) === chain]).toEqual([true, true]);
  });

  it("leave rows that know the outcome of every candidate: they say what each choice brings", () => {
    const known = [step("a", 0), step("a", 1, { reward: 1 })].map((row) => ({
      ...row,
      candidates: row.candidates.map((one) => ({ ...one, outcome: { reward: 1, terms: {} } })),
    }));
    expect(hasChains(known)).toBe(false);
  });
});

describe("the discount of a checkpoint", () => {
  const model = (config: Record<string, unknown>) => ({ config }) as never;

  it("is the option of cql where an old checkpoint keeps no other, and its floor was set on rewards", () => {
    const old = model({ algorithm: "cql", discount: 0.9 });
    expect([returnDiscount(old), floorDiscount(old)]).toEqual([0.9, 0]);
    const now = model({ algorithm: "cql", discount: 0, returnDiscount: 1 });
    expect([returnDiscount(now), floorDiscount(now)]).toEqual([1, 1]);
    expect(returnDiscount(model({ algorithm: "cql", discount: 0 }))).toBeUndefined();
    expect(returnDiscount(model({ algorithm: "ppo", discount: 0.9 }))).toBeUndefined();
  });
});

describe("a cost", () => {
  const chosenPrices = [0, 1].map((chosen) =>
    priced(step(`c${chosen}`, 0, { chosen }), chosen === 0 ? [1, undefined] : [undefined, 10]),
  );

  it("is the price of the choice where no other candidate has one and no call has a bill", () => {
    expect([...outcomesOf(chosenPrices, "cost").target]).toEqual([1, 10]);
  });

  it("is the bill of the call where calls have one, never a mix of bills and prices", () => {
    const billed = chosenPrices.map((row, i) => ({ ...row, costUsd: 0.25 + i }));
    expect([...outcomesOf(billed, "cost").target]).toEqual([0.25, 1.25]);
    expect(() => outcomesOf(billed.with(1, chosenPrices[1] as never), "cost")).toThrow(
      /c1\/0\/0 has no cost.*price of every candidate/,
    );
  });
});
