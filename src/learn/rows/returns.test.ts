import { describe, expect, it } from "vitest";
import { loggedRow } from "../../../test/support/chain-world.ts";
import type { LoggedRow } from "./decision-row.ts";
import { hasChains, returnsToGo } from "./returns.ts";

const context = { prompt: "", fields: {} };
const step = (chain: string, index: number, change: Partial<LoggedRow> = {}) =>
  loggedRow({ ...{ id: `${chain}/0/${index}`, chain: `${chain}/0/0`, context, chosen: 0 }, ...change });

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
