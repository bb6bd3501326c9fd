import { describe, expect, it } from "vitest";
import { routingWorld, truth } from "../../../test/support/routing-world.ts";
import { digestJson } from "../../base/digest.ts";
import { rngFrom } from "../../base/rng.ts";
import { type RoutingRow, toLoggedRow } from "../../convert/routing-jsonl.ts";
import { type DecisionPolicy, parseStaticTable } from "../../policy/index.ts";
import { type Evaluation, evaluatePolicy } from "./evaluate.ts";
import { hullArea } from "./hull.ts";
import { toJudgedRows } from "./judged-row.ts";

/** Sends proofs to strong and sums to cheap, with a confidence of 0.8: the optimum. */
const wise: DecisionPolicy = {
  family: "router",
  revision: { id: "wise" as never, digest: digestJson("test", "wise") },
  answer: ({ prompt }) => ({
    probabilities: prompt.startsWith("Prove") ? [0.1, 0.9] : [0.9, 0.1],
    confidence: prompt.startsWith("Prove") ? 0.8 : 0.9,
  }),
};
const wiseTruth = truth((hard) => (hard ? 0.9 : 0.1));
const always = (id: string) => parseStaticTable(`schema: rollbook.static-table.v1\ndefault: ${id}`, "t");
const setup = { policy: wise, table: always("strong"), floor: 0.5, exploration: 0, single: always("strong") };
const judge = (rows: readonly RoutingRow[], change: Partial<typeof setup> = {}, more = {}) =>
  evaluatePolicy(toJudgedRows(rows.map(toLoggedRow), "task").rows, {
    setup: { ...setup, ...change },
    single: change.single ?? setup.single,
    rng: rngFrom(1),
    replicates: 300,
    ...more,
  });
const worthOf = (evaluation: Evaluation, name: string, measure: "quality" | "cost" | "reward") =>
  evaluation.contenders.find((each) => each.name === name)!.values[measure]!;
const covers = ({ intervals }: { intervals: readonly { low: number; high: number }[] }, value: number) =>
  intervals.every(({ low, high }) => low <= value && value <= high);

describe("evaluate", () => {
  const evaluation = judge(routingWorld(4000, 4));

  it("values quality, cost and both together, with intervals that cover the truth of every contender", () => {
    const truths = {
      learned: wiseTruth,
      static: truth(() => 1),
      single: truth(() => 1),
      behaviour: truth((hard) => (hard ? 0.6 : 0.4)),
      random: truth(() => 0.5),
    };
    for (const [name, values] of Object.entries(truths))
      for (const measure of ["quality", "cost", "reward"] as const)
        expect(covers(worthOf(evaluation, name, measure), values[measure]), `${name} ${measure}`).toBe(true);
    expect(evaluation.certification).toBe("certified");
    expect(evaluation.contenders.map(({ name }) => name)).not.toContain("oracle");
  });

  it("pairs differences row by row: their error is below that of two separate estimates", () => {
    const of = (measure: string, against: string) =>
      evaluation.comparisons.find((each) => each.measure === measure && each.against === against)!;
    expect(of("cost", "static").says).toBe("better");
    expect(of("reward", "static").says).toBe("better");
    expect(of("quality", "random").says).toBe("better");
    expect(covers(of("reward", "static").difference, wiseTruth.reward - truth(() => 1).reward)).toBe(true);
    const [a, b] = [worthOf(evaluation, "learned", "reward"), worthOf(evaluation, "random", "reward")];
    const apart = Math.hypot(a.standardError, b.standardError);
    expect(of("reward", "random").difference.standardError).toBeLessThan(apart);
  });

  it("goes the router's way: below the floor the table is judged, and exploration is part of the value", () => {
    const floored = judge(routingWorld(4000, 4), { floor: 0.85 });
    // Only sums reach 0.9; proofs fall back to strong.
    expect(covers(worthOf(floored, "learned", "quality"), truth((hard) => (hard ? 1 : 0.1)).quality)).toBe(
      true,
    );
    expect(floored.liveness.live).toBeCloseTo(0.5, 1);
    const explored = judge(routingWorld(4000, 4), { exploration: 1 });
    expect(worthOf(explored, "learned", "cost").estimate.value).toBeCloseTo(
      worthOf(explored, "random", "cost").estimate.value,
      9,
    );
  });

  it("warns of a policy that never decides, as its floor is out of reach, and judges the table in its place", () => {
    const dead = judge(routingWorld(1000, 4), { floor: 0.95 });
    expect(dead.liveness).toMatchObject({ live: 0, highestConfidence: 0.9, floor: 0.95 });
    expect(dead.liveness.warning).toMatch(/never decides.*0\.900.*0\.95/);
    expect(worthOf(dead, "learned", "reward").estimate.value).toBe(
      worthOf(dead, "static", "reward").estimate.value,
    );
  });

  it("uses known outcomes where there are any, adds the oracle, and agrees with the off-policy answer", () => {
    const rows = routingWorld(4000, 4, { full: true });
    const known = judge(rows);
    expect(known.contenders.find(({ name }) => name === "oracle")!.basis).toBe("full information");
    const [exact, estimated] = [
      worthOf(known, "learned", "quality"),
      worthOf(evaluation, "learned", "quality"),
    ];
    expect(Math.abs(exact.estimate.value - estimated.estimate.value)).toBeLessThan(
      3 * estimated.standardError,
    );
    expect(exact.standardError).toBeLessThan(estimated.standardError);
    expect(worthOf(known, "oracle", "reward").estimate.value).toBeGreaterThan(
      worthOf(known, "learned", "reward").estimate.value,
    );
  });

  it("refuses with reasons and names where the log says nothing about the policy", () => {
    const rows = routingWorld(600, 4).map((row) => ({
      ...row,
      ...{ model_chosen: "strong", propensity: 1 },
      state: {
        ...row.state,
        candidates: row.state.candidates.map((one) => ({ ...one, probability: one.id === "strong" ? 1 : 0 })),
      },
    }));
    const refused = judge(rows);
    expect(refused.contenders[0]).toMatchObject({ name: "learned", basis: "refused", values: {} });
    expect(refused.contenders[0]!.reasons.join()).toMatch(
      /^cheap gets 50\.0 % of the choices, and no row that judges has this choice/,
    );
    expect(refused.contenders.find(({ name }) => name === "static")!.basis).toBe("off-policy");
  });

  it("labels estimated propensities as not certified, and takes missing ones for an error with the decision", () => {
    const rows = routingWorld(1500, 6).map((row) => ({
      ...row,
      propensity: null,
      state: { ...row.state, candidates: row.state.candidates.map((one) => ({ ...one, probability: null })) },
    }));
    expect(() => judge(rows)).toThrow(
      /1 500 of 1 500 rows .* first decision d-0\. .*--estimate-propensities/,
    );
    const estimated = judge(rows, {}, { estimatePropensities: true });
    expect(estimated.certification).toBe("not certified");
    expect(estimated.contenders[0]!.panels.reward).toMatchObject({ certification: "not certified" });
    expect(covers(worthOf(estimated, "learned", "reward"), wiseTruth.reward)).toBe(true);
  });

  it("draws the frontier with bands: APGR of a good score is above a half, and the hull above that of the singles", () => {
    const { frontier } = evaluation;
    if ("absent" in frontier) throw new Error(frontier.absent);
    expect(frontier).toMatchObject({ weak: "cheap", strong: "strong" });
    expect(frontier.apgr.value!).toBeGreaterThan(0.6);
    // By hand: proofs first recovers 0.3 of 0.325 at half the calls, so the area is 0.5·0.923/2 + 0.5·(0.923 + 1)/2.
    expect(frontier.apgr.band!.low).toBeLessThan(0.712);
    expect(frontier.apgr.band!.high).toBeGreaterThan(0.712);
    expect(frontier.hull!.area!.value!).toBeGreaterThan(frontier.hull!.singlesArea!.value!);
    expect(frontier.hull!.area!.band!.low).toBeGreaterThan(0.5);
    expect(frontier.hull!.refused).toEqual([]);
  });

  it("gives no number to what the log cannot carry: neither a contender, nor a point, nor a figure made of them", () => {
    // 55 rows: about half of them choose "always strong", fewer than the required 50.
    const { contenders, comparisons, frontier } = judge(routingWorld(55, 4));
    for (const name of ["learned", "static", "single"]) {
      const found = contenders.find((each) => each.name === name)!;
      expect([name, found.basis, Object.keys(found.values)]).toEqual([name, "refused", []]);
      expect(found.reasons[0]).toMatch(
        /the log is too small\. It has 55 tasks left to judge by, with an effective sample size below 50\. Record about 1000 different tasks/,
      );
    }
    expect(comparisons).toEqual([]);
    expect(frontier).toEqual({
      absent: expect.stringMatching(/the log cannot carry it: .*the log is too small/),
    });
  });

  it("refuses points of the hull one by one", () => {
    const rare = { id: "rare", selectable: true, reasons: [], probability: 0, features: {} };
    const rows = routingWorld(2000, 4).map((row) => ({
      ...row,
      state: { ...row.state, candidates: [...row.state.candidates, rare] },
    }));
    const answer: DecisionPolicy["answer"] = (context, candidates) => {
      const { probabilities, confidence } = wise.answer(context, candidates);
      return { probabilities: [...probabilities, 0], confidence };
    };
    const { frontier } = judge(rows, { policy: { ...wise, answer } });
    if ("absent" in frontier) throw new Error(frontier.absent);
    const { points, refused, area, singlesArea } = frontier.hull!;
    expect(refused.map(({ name }) => name)).toEqual(["rare"]);
    expect(refused[0]!.reasons.join()).toMatch(/^rare gets 100\.0 % of the choices/);
    expect(points.map(({ name }) => name)).toEqual(expect.arrayContaining(["cheap", "strong"]));
    expect([area, singlesArea]).toEqual([undefined, undefined]);
  });
});

describe("hullArea", () => {
  it("is the mean height of the upper hull over the cost of the singles, by hand", () => {
    const [cheap, dear] = [
      { cost: 0, quality: 0.5, single: true },
      { cost: 1, quality: 0.9, single: true },
    ];
    expect(hullArea([cheap, dear])).toBeCloseTo(0.7, 12);
    // A point at (0.5, 0.9) raises the hull to 0.9 from there on: (0.7 + 0.9) / 2.
    expect(hullArea([cheap, dear, { cost: 0.5, quality: 0.9, single: false }])).toBeCloseTo(0.8, 12);
    // A point below the line changes nothing.
    expect(hullArea([cheap, dear, { cost: 0.5, quality: 0.6, single: false }])).toBeCloseTo(0.7, 12);
    expect(hullArea([cheap])).toBeUndefined();
  });
});
