import { describe, expect, it } from "vitest";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { billed } from "../../../test/support/routing-world.ts";
import { rngFrom } from "../../base/index.ts";
import { outcomesOf } from "../../learn/rows/index.ts";
import { parseStaticTable } from "../../policy/index.ts";
import { gatePolicies, noCost } from "../gate.ts";
import { checkData } from "./data-check.ts";
import { measuresIn, measuresOf, mixedCosts, toJudgedRows, totalRewardRows } from "./judged-row.ts";

describe("the parts of a reward", () => {
  it("are the same whichever sign says what cost means", () => {
    const right = { value: 1, weight: 1 };
    // By hand: right 1, a cost of 0.3 with weight one half, a latency of 0.2 with weight one tenth.
    const minusOne = { right, cost: { value: -0.3, weight: 0.5 }, latency: { value: -0.2, weight: 0.1 } };
    const dollars = { right, cost: { value: 0.3, weight: -0.5 }, latency: { value: 0.2, weight: -0.1 } };
    for (const terms of [minusOne, dollars])
      expect(measuresOf(0.83, { terms })).toEqual({ reward: 0.83, quality: 1, cost: 0.3, latency: 0.2 });
  });

  it("leave what no term explains to quality, but no rounding", () => {
    const terms = {
      quality: { value: 0, weight: 1 },
      cost: { value: -0.1, weight: 0.6 },
      latency: { value: -0.3, weight: 0.2 },
    };
    expect(measuresOf(0 - 0.1 * 0.6 - 0.3 * 0.2, { terms }).quality).toBe(0);
    expect(measuresOf(-0.5, { terms: {} }).quality).toBe(-0.5);
    expect(measuresOf(1, { terms }).quality).toBeCloseTo(1.12, 12);
  });

  it("take a price for the cost where none was logged", () => {
    expect(measuresOf(1, { terms: {}, price: 3 }).cost).toBe(3);
    expect(measuresOf(1, { terms: { cost: { value: -2, weight: 0 } }, price: 3 }).cost).toBe(2);
    expect(measuresOf(1, { terms: {} }).cost).toBeNull();
  });
});

it("a policy learns the quality and the cost by which it is judged", () => {
  // By hand: 0.9 − 0.5·0.2 − 1·0.1 + 0.05 that no term explains.
  const terms = {
    right: { value: 0.9, weight: 1 },
    cost: { value: 0.2, weight: -0.5 },
    latency: { value: 0.1, weight: -1 },
  };
  const [row] = toJudgedRows(
    billed(1, 3).map((each) => ({ ...each, reward: 0.75, terms })),
    "task",
  ).rows;
  const learned = (measure: "quality" | "cost") =>
    outcomesOf([{ ...billed(1, 3)[0]!, reward: 0.75, terms }], measure).target[0];
  expect(row!.measures).toMatchObject({ cost: 0.2, latency: 0.1 });
  expect(row!.measures.quality).toBeCloseTo(0.95, 12);
  expect([learned("quality"), learned("cost")]).toEqual([row!.measures.quality, 0.2]);
});

describe("recorded costs of calls", () => {
  const rows = billed(400, 3);

  it("are judged though an unlabelled row has none", () => {
    const { costUsd: _, ...bare } = rows[7]!;
    const judged = toJudgedRows(
      rows.map((row, i) => (i === 7 ? { ...bare, reward: null } : row)),
      "task",
    );
    expect([judged.callCosts, judged.unlabelled]).toEqual([true, 1]);
    expect(measuresIn(judged.rows)).toContain("cost");
  });

  it("that some labelled rows lack are missed by name, in a finding and in the gate's refusal", () => {
    const lacking = rows.map(({ costUsd, ...row }, i) =>
      i === 7 || i === 90 ? row : { ...row, costUsd: costUsd! },
    );
    const judged = toJudgedRows(lacking, "task");
    expect(judged.callCosts).toBe(false);
    expect(measuresIn(judged.rows)).not.toContain("cost");
    const [finding] = checkData(judged.rows).filter(({ kind }) => kind === "costs");
    expect(finding).toMatchObject({ severity: "warn" });
    expect(finding!.message).toMatch(
      /^no cost is known of 2 of 400 decisions, first d-7: cost is not judged\. To have costs in later rollouts, /,
    );
    const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: strong", "t");
    const setup = { policy: undefined, table, floor: 0, exploration: 0 };
    const refused = refusalOf(() =>
      gatePolicies(judged.rows, {
        ...{ rng: rngFrom(1), candidates: [setup], baseline: setup },
        rule: { method: "student-t", alpha: 0.05, tried: 1, epsilonQuality: 0, epsilonCost: 0 },
      }),
    );
    expect(refused).toMatchObject({ code: "no-cost", fields: { rows: 400, lacking: 2, id: "d-7" } });
    expect(refused.message).toMatch(/no cost is known of 2 decisions of 400, first d-7\. /);
  });
});

describe("declared prices of candidates", () => {
  const PRICES = { cheap: 0.001, strong: 0.02 } as const;
  const declared = billed(40, 3).map((row) => ({
    ...row,
    candidates: row.candidates.map((one) => ({
      ...one,
      features: { callPrice: PRICES[one.id as keyof typeof PRICES] },
    })),
  }));
  const priceOf = ({ candidates, chosen }: (typeof declared)[number]) =>
    PRICES[candidates[chosen]!.id as keyof typeof PRICES];

  it("are the costs where no call has one, and known beforehand", () => {
    const { rows, callCosts, declaredPrices } = toJudgedRows(
      declared.map(({ costUsd: _, ...row }) => row),
      "task",
    );
    expect([callCosts, declaredPrices]).toEqual([false, true]);
    expect(rows.map(({ measures }) => measures.cost)).toEqual(declared.map(priceOf));
    expect(rows[0]!.prices).toEqual([0.001, 0.02]);
  });

  it("stand behind the recorded cost of a call, row by row", () => {
    const some = declared.map(({ costUsd, ...row }, i) =>
      i % 2 === 0 ? { ...row, costUsd: costUsd! } : row,
    );
    const { rows, callCosts, declaredPrices } = toJudgedRows(some, "task");
    expect([callCosts, declaredPrices]).toEqual([true, true]);
    expect(rows.map(({ measures }) => measures.cost)).toEqual(
      declared.map((row, i) => (i % 2 === 0 ? row.costUsd : priceOf(row))),
    );
    expect(rows[0]!.prices).toBeUndefined();
  });
});

describe("costs of two kinds", () => {
  // A book with an imported log, whose cost is a term, and gateway traffic, whose candidates declare prices.
  const mixed = billed(400, 3).map(({ costUsd, ...row }, i) =>
    i < 300
      ? { ...row, terms: { cost: { value: costUsd!, weight: 0 } } }
      : { ...row, candidates: row.candidates.map((one) => ({ ...one, features: { callPrice: 0.02 } })) },
  );
  const kinds =
    /^the log holds costs of two kinds: \(1\) 300 decisions \(first d-0\) have a scored cost .*; \(2\) 100 decisions \(first d-300\) have no scored cost, only US dollars.*\./;

  it("are told apart, with the rows of each and what to do", () => {
    const { rows } = toJudgedRows(mixed, "task");
    const [finding] = checkData(rows).filter(({ kind }) => kind === "costs");
    expect(finding!.message).toMatch(kinds);
    const refused = [noCost(rows), refusalOf(() => totalRewardRows(rows, { costWeight: 1 }))];
    for (const { code, message } of refused) {
      expect([code, message]).toEqual(["no-cost", expect.stringMatching(kinds)]);
      expect(message).toContain("one kind at a time");
    }
  });

  it("are taken apart by the time between them, or else by experiment", () => {
    const remedyAt = (atMs: (row: number) => number) =>
      mixedCosts(toJudgedRows(mixed, "task").rows.map((row, i) => ({ ...row, atMs: atMs(i) })))!.remedy;
    const [cut, other] = ["1970-01-01T00:00:01.000Z", "1970-01-01T00:00:00.101Z"];
    expect(remedyAt((i) => (i < 300 ? i : 1000))).toContain(
      `--until ${cut} selects (1), --since ${cut} selects (2).`,
    );
    expect(remedyAt((i) => 400 - i)).toContain(`--until ${other} selects (2), --since ${other} selects (1).`);
    expect(remedyAt((i) => i % 7)).toContain("--exp NAME");
  });

  it("are one kind in each part", () => {
    for (const part of [mixed.slice(0, 300), mixed.slice(300)])
      expect(measuresIn(toJudgedRows(part, "task").rows)).toContain("cost");
  });
});
