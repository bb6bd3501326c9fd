import { describe, expect, it } from "vitest";
import { ALWAYS_NEW, ALWAYS_OLD, BETTER, rareLog, WORSE } from "../../test/support/rare-worlds.ts";
import { refusalOf } from "../../test/support/refusal-of.ts";
import { routingWorld, truth } from "../../test/support/routing-world.ts";
import { digestJson } from "../base/digest.ts";
import { rngFrom } from "../base/rng.ts";
import { toLoggedRow } from "../convert/routing-jsonl.ts";
import { type DecisionPolicy, parseStaticTable } from "../policy/index.ts";
import { toJudgedRows } from "./evaluate/judged-row.ts";
import { bestPassing, explainCheck, type GateRule, gateCheck, gatePolicies } from "./gate.ts";
import { meanOverUnits } from "./ope/index.ts";

const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: strong", "t");
const baseline = { policy: undefined, table, floor: 0, exploration: 0 };
/** Chooses strong with this probability, by kind of prompt. */
const mix = (name: string, strong: (hard: boolean) => number) => {
  const policy: DecisionPolicy = {
    family: "router",
    revision: { id: name as never, digest: digestJson("test", name) },
    answer: ({ prompt }) => {
      const p = strong(prompt.startsWith("Prove"));
      return { probabilities: [1 - p, p], confidence: 1 };
    },
  };
  return { policy, table, floor: 0.5, exploration: 0 };
};
const wise = mix("wise", (hard) => (hard ? 1 : 0));
const cheap = mix("cheap", () => 0);
const rule: GateRule = { method: "student-t", alpha: 0.05, tried: 1, epsilonQuality: 0.05, epsilonCost: 0 };
const rowsOf = (count: number, seed: number) =>
  toJudgedRows(routingWorld(count, seed).map(toLoggedRow), "task").rows;
const gate = (rows: ReturnType<typeof rowsOf>, candidates: (typeof wise)[], change: Partial<GateRule> = {}) =>
  gatePolicies(rows, {
    rng: rngFrom(1),
    candidates,
    baseline,
    rule: { ...rule, tried: candidates.length, ...change },
  });
const passes = (gated: readonly { outcome: string }[]) => gated.some(({ outcome }) => outcome === "pass");

/** True if an uncorrected bound at `z` standard errors would pass the quality check. */
const wouldPass = ([judged]: ReturnType<typeof gate>, z: number) => {
  const [quality] = judged!.checks;
  return quality !== undefined && quality.difference - z * quality.standardError! >= -quality.epsilon;
};

/** Exactly ε worse in quality than always-strong: a proof sent to cheap loses 0.6, and half of the rows are proofs. */
const EPSILON = 0.05;
const hard = (share: number) => mix(`edge-${share}`, (isHard) => (isHard ? 1 - share : 1));
const edge = hard((2 * EPSILON) / 0.6);
const promises = {
  propensityFloor: 0.4,
  ranges: { quality: { low: 0, high: 1 }, cost: { low: 0, high: 1 } },
};

describe("the gate", () => {
  it("refuses a thousand rows of a few tasks", () => {
    const rows = toJudgedRows(routingWorld(1000, 3, { perTask: 40 }).map(toLoggedRow), "task").rows;
    const [judged] = gate(rows, [wise]);
    expect(judged).toMatchObject({ outcome: "refuse", checks: [] });
    expect(judged!.reasons.join()).toMatch(
      /^the log is too small\. It has 25 tasks left to judge by, with an effective sample size below 50\. Record about 1000/,
    );
  });

  it("says of fewer than 1 in 100 logs with exact propensities that estimators disagree", () => {
    let alarms = 0;
    for (let seed = 0; seed < 100; seed++) {
      const [judged] = gate(rowsOf(250, 5000 + seed), [wise]);
      if (judged!.reasons.some((reason) => reason.includes("disagree"))) alarms++;
    }
    expect(alarms).toBeLessThanOrEqual(1);
  }, 120_000);

  it("says which share of the baseline's decisions a candidate changes", () => {
    const rows = rowsOf(1000, 3);
    const easy = rows.filter(({ context }) => !context.prompt.startsWith("Prove")).length / rows.length;
    const same = mix("same", () => 1);
    const [of, half, unlike] = gate(rows, [same, mix("half", () => 0.5), wise]);
    expect(of).toMatchObject({ changed: 0 });
    expect(half!.changed).toBeCloseTo(0.5, 9);
    expect(unlike!.changed).toBeCloseTo(easy, 9);
    const options = { rng: rngFrom(1), candidates: [same], rule, baseline: "behaviour" as const };
    const logged = rows.filter(({ chosen, candidates }) => candidates[chosen]!.id === "strong").length;
    expect(gatePolicies(rows, options)[0]!.changed).toBeCloseTo(1 - logged / rows.length, 9);
  });

  it("passes a policy that keeps quality and saves cost, and names bounds on the right side of the truth", () => {
    const [judged] = gate(rowsOf(6000, 3), [wise]);
    expect(judged).toMatchObject({ outcome: "pass", reasons: [], live: 1 });
    const [quality, cost] = judged!.checks;
    const gap = truth((isHard) => (isHard ? 1 : 0)).quality - truth(() => 1).quality;
    expect(quality!.bound!).toBeLessThan(gap);
    expect(quality!.bound!).toBeGreaterThan(gap - 0.06);
    expect(cost).toMatchObject({ measure: "cost", clears: true });
    expect(cost!.difference).toBeCloseTo(-0.45, 1);
  });

  it("does not judge costs by a mean that one decision makes, unless quality alone is asked for", () => {
    const rng = rngFrom(4);
    const rows = rowsOf(2000, 3).map((row) => ({
      ...row,
      measures: { ...row.measures, cost: (1 - rng.float()) ** (-1 / 0.9) },
    }));
    expect(gate(rows, [wise])[0]!.reasons.join()).toMatch(
      /one of \d+ decisions for \w+ holds .* of all its cost/,
    );
    expect(gate(rows, [wise], { epsilonCost: null })[0]).toMatchObject({ outcome: "pass" });
  });

  it("refuses with the reason: worse quality, higher cost, or too little data for either", () => {
    const reasons = (...of: Parameters<typeof gate>) => gate(...of)[0]!.reasons.join("\n");
    expect(reasons(rowsOf(3000, 3), [cheap])).toMatch(
      /quality: it may be up to 0\.\d+ worse \(student-t, 95\.00 % one-sided\), and the margin is 0\.05; the estimated difference is -0\.28/,
    );
    const dear = { candidates: [mix("dear", () => 1)], baseline: { ...wise }, rule, rng: rngFrom(1) };
    expect(gatePolicies(rowsOf(3000, 3), dear)[0]!.reasons.join()).toMatch(
      /cost: it may be up to [\d.]+ higher .*, and the margin is 0;/,
    );
    expect(reasons(rowsOf(60, 3), [wise])).toMatch(/the log is too small/);
    expect(
      reasons(rowsOf(1000, 3), [
        {
          ...wise,
          floor: 1,
          policy: { ...wise.policy, answer: (c, o) => ({ ...wise.policy.answer(c, o), confidence: 0.5 }) },
        },
      ]),
    ).toMatch(/never decides/);
  });

  it("takes a difference that is only rounding for none, and blames the bound", () => {
    const estimate = (values: number[]) =>
      meanOverUnits("mean", Float64Array.from(values), {
        units: { of: Int32Array.from(values, (_, i) => i), count: values.length, rows: undefined },
      });
    const [low, high] = [estimate([0.3, 0]), estimate([0.1 + 0.2, 0])];
    expect(low.value - high.value).not.toBe(0);
    const exact = { ...rule, epsilonQuality: 0 };
    const about = { measure: "quality" as const, rule: exact };
    const found = [low, high].map((one) =>
      gateCheck(one, one === low ? high : low, {
        ...about,
        intervalOf: () => ({ low: -0.0476, high: 0.0476 }),
      }),
    );
    for (const check of found) {
      expect(check.difference).toBe(0);
      expect(explainCheck(check, exact)).toMatch(
        /it may be up to 0\.0476 worse .*; the estimated difference is \+0\.00$/,
      );
    }
  });

  it("lets a policy that is worse by the margin through in at most alpha of 60 logs", () => {
    expect(truth((isHard) => (isHard ? 1 - (2 * EPSILON) / 0.6 : 1)).quality).toBeCloseTo(
      truth(() => 1).quality - EPSILON,
      12,
    );
    let passed = 0;
    for (let r = 0; r < 60; r++) if (passes(gate(rowsOf(200, 1000 + r), [edge]))) passed++;
    // 0.05 + three binomial standard errors. The campaign judge-promises checks the same on 2 000 logs.
    expect(passed / 60).toBeLessThanOrEqual(0.05 + 3 * Math.sqrt((0.05 * 0.95) / 60));
  });

  it("holds alpha for the whole set when six such policies are tried, and fails to without the correction", () => {
    const six = Array.from({ length: 6 }, (_, i) => hard((2 * EPSILON) / 0.6 + i * 1e-9));
    // Six policies with independent errors: each is judged on its own rows.
    let [corrected, careless] = [0, 0];
    for (let r = 0; r < 20; r++) {
      const each = six.map((candidate, i) => gate(rowsOf(150, 5000 + 6 * r + i), [candidate], { tried: 6 }));
      if (each.some(passes)) corrected++;
      if (each.some((gated) => wouldPass(gated, 1.645))) careless++;
    }
    expect(corrected / 20).toBeLessThanOrEqual(0.05 + 3 * Math.sqrt((0.05 * 0.95) / 20));
    expect(careless / 20).toBeGreaterThan(0.12);
  });

  it("holds alpha under peeking with a confidence sequence, where Student-t does not, and still passes the wise", () => {
    const looks = [100, 200, 300, 400, 500, 600];
    let [sequence, careless] = [0, 0];
    for (let r = 0; r < 15; r++) {
      const rows = rowsOf(600, 9000 + r);
      const each = looks.map((n) =>
        gate(rows.slice(0, n), [edge], { method: "confidence-sequence", ...promises }),
      );
      if (each.some(passes)) sequence++;
      // z of 0.8: a single look at alpha 0.2.
      if (each.some((gated) => wouldPass(gated, 0.8416))) careless++;
    }
    expect(sequence / 15).toBeLessThanOrEqual(0.05);
    // At alpha 0.2, six looks pass more often than alpha allows.
    expect(careless / 15).toBeGreaterThan(0.25);
    const many = gate(rowsOf(10_000, 4), [wise], {
      method: "confidence-sequence",
      epsilonQuality: 0.1,
      ...promises,
    });
    expect(passes(many)).toBe(true);
  });

  it("takes the passing candidate with the best bound, and says what a bound needs to know", () => {
    const gated = gate(rowsOf(6000, 3), [cheap, wise]);
    expect(gated.map(({ outcome }) => outcome)).toEqual(["refuse", "pass"]);
    expect(bestPassing(gated)).toBe(1);
    expect(bestPassing(gated.slice(0, 1))).toBeUndefined();
    expect(() => gate(rowsOf(500, 3), [wise], { method: "empirical-bernstein" })).toThrow(
      /--quality-range and --propensity-floor/,
    );
    expect(() =>
      gate(rowsOf(500, 3), [wise], { method: "empirical-bernstein", ...promises, propensityFloor: 0.5 }),
    ).toThrow(
      /^decision \S+ was chosen with probability 0\.\d+, below --propensity-floor 0\.5\. State a lower --propensity-floor/,
    );
    const ranges = { ...promises.ranges, quality: { low: 0.5, high: 1 } };
    expect(() =>
      gate(rowsOf(500, 3), [wise], { method: "empirical-bernstein", ...promises, ranges }),
    ).toThrow(
      /^decision \S+ has the quality 0, outside the range 0\.5\.\.1\. State the possible range with --quality-range=LOW\.\.HIGH\.$/,
    );
    expect(() => gate(rowsOf(500, 3), [wise, cheap], { tried: 1 })).toThrow(
      /2 candidates given, and --candidates-tried is 1/,
    );
    const free = rowsOf(500, 3).map((row) => ({ ...row, measures: { ...row.measures, cost: null } }));
    expect(() => gate(free, [wise])).toThrow(/--quality-only/);
    expect(gate(free, [wise], { epsilonCost: null })[0]!.checks).toHaveLength(1);
  });

  it.each(["empirical-bernstein", "confidence-sequence"] as const)(
    "takes value, baseline, difference and bound of a %s check from one estimate",
    (method) => {
      const rows = rowsOf(800, 3);
      const [quality] = gate(rows, [wise], { method, ...promises, epsilonCost: null })[0]!.checks;
      // IPS of quality − 0.5, the middle of its range.
      const centred = (strong: (isHard: boolean) => number) =>
        rows.reduce((sum, { context, candidates, chosen, propensity, measures }) => {
          const p = strong(context.prompt.startsWith("Prove"));
          const weight = (candidates[chosen]!.id === "strong" ? p : 1 - p) / propensity!;
          return sum + (weight * (measures.quality! - 0.5)) / rows.length;
        }, 0.5);
      const [mine, theirs] = [centred((isHard) => (isHard ? 1 : 0)), centred(() => 1)];
      expect(quality!.candidate).toBeCloseTo(mine, 12);
      expect(quality!.baseline).toBeCloseTo(theirs, 12);
      expect(quality!.difference).toBeCloseTo(mine - theirs, 12);
      expect(quality!.bound!).toBeLessThan(quality!.difference);
    },
  );

  it.each(["empirical-bernstein", "confidence-sequence"] as const)(
    "judges no log by %s without the limits it needs, also a log that is too small",
    (method) => {
      const { propensityFloor, ranges } = promises;
      const small = rowsOf(20, 3);
      expect(gate(small, [wise], { method, ...promises })[0]!.checks).toEqual([]);
      const lacking = [
        { propensityFloor, ranges: { quality: ranges.quality } },
        { propensityFloor, ranges: { cost: ranges.cost } },
        { ranges },
      ];
      for (const change of lacking)
        for (const rows of [small, rowsOf(800, 3)])
          expect(refusalOf(() => gate(rows, [wise], { method, ...change })).code).toBe("range-unknown");
      expect(gate(small, [wise], { method, ...lacking[0], epsilonCost: null })).toHaveLength(1);
    },
  );

  it("refuses a known outcome outside the stated range, although the log did not choose it", () => {
    const rows = toJudgedRows(routingWorld(400, 3, { full: true }).map(toLoggedRow), "task").rows;
    const wrong = rows.map((row, i) =>
      i === 5
        ? { ...row, known: row.known!.map((each, c) => (c === row.chosen ? each : { ...each, quality: 3 })) }
        : row,
    );
    const { ranges } = promises;
    const judge = (of: typeof rows) =>
      gatePolicies(of, {
        ...{ rng: rngFrom(1), candidates: [wise], baseline: "behaviour" },
        rule: { ...rule, ranges, epsilonCost: null },
      });
    expect(judge(rows)).toHaveLength(1);
    expect(refusalOf(() => judge(wrong)).message).toMatch(
      /^decision d-5 has the quality 3 of \w+, outside the range 0\.\.1\. /,
    );
  });

  it("refuses a price outside the stated range of costs, which would switch off the check of heavy tails", () => {
    const priced = rowsOf(400, 3).map((row) => ({ ...row, prices: [0.1, 1] }));
    const ranges = { cost: { low: 0, high: 0.5 } };
    expect(refusalOf(() => gate(priced, [wise], { ranges })).message).toMatch(
      /has the cost 1, outside the range 0\.\.0\.5\. State the possible range with --cost-range/,
    );
  });

  it("bounds a difference by the width of the range, which no two values exceed", () => {
    // A low floor allows large weights, so the range of a term is far wider than that of the outcome.
    const loose = { ...promises, propensityFloor: 0.001 };
    const few = gate(rowsOf(200, 3), [wise], { method: "confidence-sequence", ...loose });
    const [quality, cost] = few[0]!.checks;
    expect(quality!.bound).toBe(-1);
    expect(cost!.bound).toBe(promises.ranges.cost.high - promises.ranges.cost.low);
  });

  it("never certifies what rests on estimated propensities", () => {
    const rows = rowsOf(2000, 3).map(({ behaviour: _, ...row }) => ({ ...row, propensity: null }));
    const [judged] = gatePolicies(rows, {
      rng: rngFrom(1),
      candidates: [wise],
      baseline,
      rule,
      estimatePropensities: true,
    });
    expect(judged!.reasons.join()).toMatch(/propensities were not logged/);
  });

  it.each(WORSE.slice(0, 3))(
    "rarely lets a policy through whose failures the log may not show: $name",
    (world) => {
      const passed = Array.from({ length: 20 }, (_, seed) =>
        gatePolicies(rareLog(world, seed), {
          rng: rngFrom(1),
          candidates: [ALWAYS_NEW],
          baseline: ALWAYS_OLD,
          rule: { ...rule, epsilonQuality: world.margin, epsilonCost: null },
        }),
      ).filter(([each]) => each!.outcome === "pass");
      expect(passed.length).toBeLessThanOrEqual(2);
    },
  );

  it("refuses a log without variation, and takes a policy that chooses like the baseline for the baseline", () => {
    const rows = rareLog({ ...WORSE[2]!, draw: () => 0 }, 1);
    const ask = (candidate: typeof ALWAYS_NEW, of: typeof rows) =>
      gatePolicies(of, {
        rng: rngFrom(1),
        candidates: [candidate],
        baseline: ALWAYS_OLD,
        rule: { ...rule, epsilonCost: null },
      })[0]!;
    expect(ask(ALWAYS_NEW, rows).reasons.join()).toMatch(/the outcome is always 0 \(400 rows\)/);
    // The log also rarely has this candidate, so the shared fault is not the first.
    const rare = ask(ALWAYS_NEW, rareLog({ ...WORSE[2]!, share: 0.01, draw: () => 0 }, 1)).reasons;
    expect(rare.filter((reason) => reason.includes("the outcome is always 0"))).toEqual([
      expect.stringMatching(/^the outcome is always 0/),
    ]);
    expect(rare.filter((reason) => reason.startsWith("the candidate: "))).toHaveLength(1);
    const varied = rareLog(BETTER[0]!, 1);
    const same = {
      ...ALWAYS_NEW,
      policy: { ...ALWAYS_NEW.policy!, answer: () => ({ probabilities: [0, 1], confidence: 1 }) },
    };
    expect(ask(same, varied)).toMatchObject({ outcome: "pass", checks: [{ difference: 0, bound: 0 }] });
  });
});
