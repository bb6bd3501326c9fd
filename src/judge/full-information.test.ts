import { describe, expect, test } from "vitest";
import { refusalOf } from "../../test/support/refusal-of.ts";
import { digestJson, rngFrom } from "../base/index.ts";
import { type DecisionPolicy, parseStaticTable } from "../policy/index.ts";
import type { JudgedRow, RouterSetup } from "./evaluate/index.ts";
import { evaluateExactly, gateExactly, isFullyKnown, isGatedExactly } from "./full-information.ts";

const IDS = ["small", "large"];
const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: large\n", "test");

/** On even rows both models are right, on odd rows only the large one. The large model costs 2, the small one 1. */
function rows(count: number): JudgedRow[] {
  return Array.from({ length: count }, (_, i) => {
    const known = IDS.map((_, a) => {
      const quality = Number(i % 2 === 0 || a === 1);
      return { reward: quality, quality, cost: a + 1, latency: null };
    });
    return {
      id: `d${i}`,
      unit: `d${i}`,
      context: { prompt: i % 2 === 0 ? "easy" : "hard", fields: {} },
      candidates: IDS.map((id) => ({ id, selectable: true, reasons: [], features: {} })),
      chosen: 0,
      propensity: null,
      reward: known[0]!.reward,
      measures: known[0]!,
      known,
    };
  });
}

const policy = (answer: (prompt: string) => number): DecisionPolicy => ({
  family: "router",
  revision: { id: "r1", digest: digestJson("test", 1) } as DecisionPolicy["revision"],
  answer: ({ prompt }) => ({
    probabilities: IDS.map((_, a) => (a === answer(prompt) ? 1 : 0)),
    confidence: 1,
  }),
});
const setup = (answer: (prompt: string) => number): RouterSetup => ({
  ...{ policy: policy(answer), table, floor: 0, exploration: 0 },
});
const thrifty = setup((prompt) => (prompt === "easy" ? 0 : 1));
const rule = { method: "student-t", alpha: 0.05, tried: 1, epsilonQuality: 0.01, epsilonCost: 0 } as const;

describe("full information", () => {
  test("gives the exact value of a policy and of the oracle, without propensities", () => {
    const judged = rows(200);
    expect(isFullyKnown(judged)).toBe(true);
    const { contenders, findings } = evaluateExactly(judged, { setup: thrifty, rng: rngFrom(1) });
    expect(findings.map(({ kind }) => kind)).not.toContain("propensities");
    const value = (name: string, measure: "reward" | "cost") =>
      contenders.find((each) => each.name === name)!.values[measure]!.estimate.value;
    expect(value("learned", "reward")).toBe(1);
    expect(value("learned", "cost")).toBe(1.5);
    expect(value("static", "cost")).toBe(2);
    expect(value("oracle", "reward")).toBe(1);
    expect(contenders.map(({ name }) => name)).not.toContain("behaviour");
    expect(contenders.every(({ basis }) => basis === "full information")).toBe(true);
  });

  test("passes what is as good and cheaper, and refuses what is worse, with every method", () => {
    const ranges = { quality: { low: 0, high: 1 }, cost: { low: 1, high: 2 } };
    for (const method of ["student-t", "empirical-bernstein", "confidence-sequence"] as const) {
      const judged = rows(2000);
      const gate = (candidate: RouterSetup) =>
        gateExactly(judged, {
          rule: { ...rule, method, ranges, epsilonQuality: 0.05 },
          candidates: [candidate],
          baseline: { ...thrifty, policy: undefined },
          rng: rngFrom(1),
        })[0]!;
      expect(gate(thrifty)).toMatchObject({ outcome: "pass", reasons: [] });
      expect(gate(setup(() => 0))).toMatchObject({ outcome: "refuse" });
    }
  });

  test("refuses to gate the cost of rows that have none, with their number and the first of them", () => {
    const free = rows(10).map((row, i) =>
      i < 4 ? row : { ...row, measures: { ...row.measures, cost: null } },
    );
    const options = { rule, candidates: [thrifty], baseline: thrifty, rng: rngFrom(1) };
    expect(refusalOf(() => gateExactly(free, options))).toMatchObject({
      ...{ code: "no-cost", fields: { rows: 10, lacking: 6, id: "d4" } },
    });
  });

  test("is gated exactly with or without propensities, but against the policy of the log by its propensities", () => {
    const logged = rows(10).map((row) => ({ ...row, propensity: 0.5, behaviour: [0.5, 0.5] }));
    expect(isGatedExactly(rows(10), { rule, baseline: "behaviour" })).toBe(true);
    expect(isGatedExactly(logged, { rule, baseline: thrifty })).toBe(true);
    expect(isGatedExactly(logged, { rule, baseline: "behaviour" })).toBe(false);
    const options = { rule, candidates: [setup(() => 0)], baseline: thrifty, rng: rngFrom(1) };
    expect(gateExactly(logged, options)).toEqual(gateExactly(rows(10), options));
  });

  test("does not take the cost of the choice for that of the others", () => {
    const billed = rows(10).map((row) => ({
      ...row,
      known: row.known!.map((each) => ({ ...each, cost: null })),
    }));
    const options = { rule, candidates: [thrifty], baseline: thrifty, rng: rngFrom(1) };
    expect(refusalOf(() => gateExactly(billed, options))).toMatchObject({
      ...{ code: "no-cost", fields: { rows: 10, lacking: 10, id: "d0" } },
    });
    const logged = billed.map((row) => ({ ...row, propensity: 0.5, behaviour: [0.5, 0.5] }));
    expect(isGatedExactly(logged, { rule, baseline: thrifty })).toBe(false);
    const { contenders } = evaluateExactly(billed, { setup: thrifty, rng: rngFrom(1) });
    expect(contenders.every(({ values }) => values.cost === undefined)).toBe(true);
  });

  test("refuses a log that holds every row twice, as a gate by propensities does", () => {
    const kinds = rows(40).map((row, i) => ({ ...row, context: { prompt: `question ${i}`, fields: {} } }));
    const copies = kinds.map((row) => ({ ...row, id: `${row.id}-b`, unit: `${row.unit}-b` }));
    const options = {
      ...{ rule: { ...rule, epsilonQuality: 0.5 }, candidates: [setup(() => 1)] },
      ...{ baseline: setup(() => 1), rng: rngFrom(1) },
    };
    expect(gateExactly(kinds, options)).toMatchObject([{ outcome: "pass" }]);
    expect(gateExactly([...kinds, ...copies], options)).toMatchObject([
      {
        outcome: "refuse",
        reasons: [expect.stringMatching(/^the log: every row occurs 2 times/)],
        checks: [],
      },
    ]);
    // A method that needs the range of cost judges neither log without it.
    const unstated = { method: "confidence-sequence", ranges: { quality: { low: 0, high: 1 } } } as const;
    for (const judged of [kinds, [...kinds, ...copies]])
      expect(
        refusalOf(() => gateExactly(judged, { ...options, rule: { ...options.rule, ...unstated } })),
      ).toMatchObject({ code: "range-unknown", fields: { measure: "cost" } });
  });

  test("refuses a cost that one outcome of a candidate makes, also if another candidate fills the field of the choice", () => {
    const usual = rows(200);
    const rare = usual.map((row, i) =>
      i === 7 ? { ...row, known: [row.known![0]!, { ...row.known![1]!, cost: 1e6 }] } : row,
    );
    const gate = (judged: JudgedRow[], candidate: RouterSetup, ranges = {}) =>
      gateExactly(judged, {
        ...{ rule: { ...rule, epsilonCost: 1e7, epsilonQuality: 1, ranges }, candidates: [candidate] },
        ...{ baseline: setup(() => 0), rng: rngFrom(1) },
      });
    const large = setup(() => 1);
    expect(gate(usual, large)).toMatchObject([{ outcome: "pass" }]);
    expect(
      gate(
        rare,
        setup(() => 0),
      ),
    ).toMatchObject([{ outcome: "pass" }]);
    const reasons = [
      expect.stringMatching(/^the log: one of 200 decisions for large holds 100 % of all its cost/),
    ];
    expect(gate(rare, large)).toMatchObject([{ outcome: "refuse", reasons }]);
    expect(gate(rare, large, { cost: { low: 0, high: 1e6 } })).toMatchObject([{ outcome: "pass" }]);
  });

  test.each(["student-t", "empirical-bernstein", "confidence-sequence"] as const)(
    "refuses by %s an outcome outside a stated range, also of a candidate that no policy chooses",
    (method) => {
      const ranges = { quality: { low: 0, high: 1 }, cost: { low: 0, high: 10 } };
      const gate = (change: { quality?: number; cost?: number }) => {
        const judged = rows(200).map((row, i) =>
          i === 7 ? { ...row, known: [row.known![0]!, { ...row.known![1]!, ...change }] } : row,
        );
        const small = setup(() => 0);
        return gateExactly(judged, {
          ...{ rule: { ...rule, method, ranges, epsilonCost: 100 }, candidates: [small] },
          ...{ baseline: small, rng: rngFrom(1) },
        });
      };
      expect(gate({})).toHaveLength(1);
      expect(refusalOf(() => gate({ cost: 1e6 }))).toMatchObject({
        code: "range-broken",
        fields: { decision: "d7", value: 1e6, low: 0, high: 10 },
        message:
          "decision d7 has the cost 1000000 of large, outside the range 0..10. State the possible range with --cost-range=LOW..HIGH (in a loop: gate.costRange).",
      });
      expect(refusalOf(() => gate({ quality: 3 })).message).toMatch(
        /^decision d7 has the \w+ 3 of large, outside the range 0\.\.1\. .*--quality-range/,
      );
    },
  );

  test("counts the candidates that were tried", () => {
    const options = { rule, candidates: [thrifty, thrifty], baseline: thrifty, rng: rngFrom(1) };
    expect(refusalOf(() => gateExactly(rows(10), options))).toMatchObject({ code: "bad-rule" });
  });

  test("has no policy behind the log to gate against", () => {
    const options = { rule, candidates: [thrifty], baseline: "behaviour", rng: rngFrom(1) } as const;
    expect(() => gateExactly(rows(10), options)).toThrow("no policy chose among them");
  });
});
