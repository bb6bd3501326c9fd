import { describe, expect, test } from "vitest";
import { weightedRange } from "../../../test/ope/weighted-range.ts";
import { BANDIT_TRUTH, banditLog, CHAIN_TRUTH, chainLog } from "../../../test/ope/worlds.ts";
import { rngFrom } from "../../base/rng.ts";
import { diagnose } from "./diagnostics.ts";
import { estimateOf } from "./estimators/estimate.ts";
import { snips } from "./estimators/snips.ts";
import { methodText } from "./intervals/interval.ts";
import { sensitivityBounds } from "./intervals/sensitivity.ts";
import type { LoggedDecisions } from "./log/logged-decisions.ts";
import { withEstimatedPropensities } from "./models/propensity-model.ts";
import { predictionsFrom } from "./models/reward-predictions.ts";
import { disagreementsOf, judgePolicy, type PanelEstimates, type PanelResult } from "./panel.ts";
import { panelText } from "./panel-text.ts";

const log = banditLog(4000, rngFrom(41));
const uniform = (n: number, p: number) => new Float64Array(n).fill(p);
const varied = (n: number) => Float64Array.from({ length: n }, (_, i) => i % 2);

describe("diagnostics", () => {
  test("by hand: weights 1, 1, 2, 4", () => {
    const facts = diagnose({
      reward: uniform(4, 0),
      behaviour: Float64Array.of(0.5, 0.25, 0.5, 0.25),
      target: Float64Array.of(0.5, 0.25, 1, 1),
    });
    expect(facts).toMatchObject({
      effectiveSize: 64 / 22,
      largestWeight: 4,
      largestShare: 0.5,
      meanWeight: 2,
    });
    expect(facts.meanWeightZ).toBeCloseTo(1 / Math.sqrt(2 / 4), 12);
  });

  test("units are counted, rows are not: by hand, two units with weights 1 + 2 and 4 + 1", () => {
    const facts = diagnose({
      reward: uniform(4, 0),
      behaviour: Float64Array.of(0.5, 0.5, 0.25, 0.5),
      target: Float64Array.of(0.5, 1, 1, 0.5),
      episode: Int32Array.of(0, 0, 1, 1),
    });
    expect(facts).toMatchObject({ rows: 4, units: 2, effectiveSize: 64 / 34, largestWeight: 4 });
    expect(facts).toMatchObject({ largestShare: 5 / 8, meanWeight: 2 });
    // The unit means 1.5 and 2.5 differ from 2 by 1/2 each: their error is 1/2.
    expect(facts.meanWeightZ).toBeCloseTo(2, 12);
  });

  test("a policy on its own log has full support", () => {
    const facts = diagnose({
      ...log,
      target: log.behaviour,
      candidates: { ...log.candidates!, target: log.candidates!.behaviour! },
    });
    expect(facts).toMatchObject({ effectiveSize: 4000, largestWeight: 1, meanWeight: 1, meanWeightZ: 0 });
    expect(facts.unsupported).toEqual({ basis: "distribution", actions: [], rows: 0, mass: 0 });
  });
});

describe("refusal", () => {
  test("many rows of few units are few, and the reason says how large a log must be", () => {
    const episode = Int32Array.from({ length: 152 }, (_, i) => i % 19);
    const few = { reward: varied(152), behaviour: uniform(152, 0.5), target: uniform(152, 0.5), episode };
    const verdict = judgePolicy(few, { rng: rngFrom(1) });
    expect(kinds(verdict)).toEqual(["thin-support"]);
    expect(panelText(verdict)).toContain(
      "the log is too small. It has 19 tasks left to judge by, with an effective sample size below 50. Record about 1000 different tasks to train",
    );
  });

  test("an effective size of 2 out of 10 000 gives no number", () => {
    // The target repeats two rows of ten thousand.
    const target = new Float64Array(10_000).fill(1e-9);
    target[7] = 1;
    target[5000] = 1;
    const thin = { reward: varied(10_000), behaviour: uniform(10_000, 0.1), target };
    const verdict = judgePolicy(thin, { rng: rngFrom(1) });
    expect(kinds(verdict)).toEqual(["thin-support", "dominant-weight", "mean-weight"]);
    expect(panelText(verdict)).toContain("REFUSED");
    expect(panelText(verdict)).toMatch(/effective sample size 2\.0 of 10.000 tasks, 50 needed/);
  });

  test("a mean weight of a few units that nearly agree is not checked, and of fifty it is", () => {
    // Weights of 1.03 ± 0.01 in every unit: z is far above its limit, but with seven units it means nothing.
    const near = (units: number) => {
      const target = Float64Array.from({ length: units }, (_, i) => 0.515 + 0.005 * (i % 2 === 0 ? 1 : -1));
      return { reward: varied(units), behaviour: uniform(units, 0.5), target };
    };
    expect(diagnose(near(7)).meanWeightZ).toBeGreaterThan(3.9);
    expect(kinds(judgePolicy(near(7), { rng: rngFrom(1) }))).not.toContain("mean-weight");
    expect(kinds(judgePolicy(near(52), { rng: rngFrom(1) }))).toEqual(["mean-weight"]);
  });

  test("target mass on actions that were never logged", () => {
    const rows = 4000;
    const verdict = judgePolicy(
      {
        reward: uniform(rows, 1),
        behaviour: uniform(rows, 0.5),
        target: uniform(rows, 0.4),
        candidates: {
          count: 3,
          chosen: Int32Array.from({ length: rows }, (_, i) => i % 2),
          target: Float64Array.from({ length: rows * 3 }, (_, i) => (i % 3 === 2 ? 0.2 : 0.4)),
        },
      },
      { rng: rngFrom(1) },
    );
    expect(kinds(verdict)).toContain("unsupported-actions");
    expect(panelText(verdict)).toContain(
      "it puts 20.0 % of its probability on candidates that the log never",
    );
  });

  test("target mass where the logged probability is 0, although other rows have the choice", () => {
    const { behaviour, ...candidates } = log.candidates!;
    const sure = behaviour!.slice();
    for (let i = 0; i < 200; i++)
      for (let a = 0; a < candidates.count; a++)
        sure[i * candidates.count + a] = candidates.chosen[i] === a ? 1 : 0;
    const certain = {
      ...log,
      behaviour: log.behaviour.map((p, i) => (i < 200 ? 1 : p)),
      candidates: { ...candidates, behaviour: sure },
    };
    const verdict = judgePolicy(certain, { rng: rngFrom(1) });
    expect(kinds(verdict)).toContain("unsupported-actions");
    expect(panelText(verdict)).toMatch(
      /in 200 of 4.000 rows, it puts probability on candidates that the old policy could not choose \(0, .*\): \d\.\d % of the whole, at most 1\.0 % allowed\. Leave such rows out, for example with --exp, or record/,
    );
  });

  test("propensities that were logged before the floor was applied betray themselves by the mean weight", () => {
    const wrong = { ...log, behaviour: log.behaviour.map((p) => p * 0.8) };
    const { candidates: _, ...columns } = wrong;
    expect(kinds(judgePolicy(columns, { rng: rngFrom(1) }))).toEqual(["mean-weight"]);
  });
});

describe("panel", () => {
  const verdict = judgePolicy(log, {
    rng: rngFrom(2),
    range: weightedRange({ reward: { low: 0, high: 1 }, floor: 0.2 }),
  }) as PanelEstimates;

  test("all six estimators, certified, in agreement; every interval without a caveat covers the truth", () => {
    expect(verdict).toMatchObject({ kind: "estimated", certification: "certified", disagreements: [] });
    expect(verdict.rows.map((row) => row.estimate.name)).toEqual([
      "IPS",
      "SNIPS",
      "DM",
      "DR",
      "Switch-DR",
      "DRos",
    ]);
    // The bootstrap interval is widened to the other one, so equal ones are printed once.
    for (const { estimate, intervals } of verdict.rows) {
      const [bootstrap, student] = intervals;
      const isSame = bootstrap!.low === student!.low && bootstrap!.high === student!.high;
      const line = panelText(verdict)
        .split("\n")
        .find((each) => each.startsWith(`${estimate.name} `))!;
      const labels = [student!, bootstrap!].map((each) => `% ${methodText(each)} [`);
      expect(labels.map((label) => line.includes(label))).toEqual([true, !isSame]);
      // An interval that is not symmetric is labelled as corrected.
      expect(labels[0]).toBe(`% student-t${student!.corrected ? ", corrected" : ""} [`);
    }
    expect(verdict.rows[0]!.intervals.map((i) => i.method)).toEqual([
      "bootstrap",
      "student-t",
      "hoeffding",
      "empirical-bernstein",
      "confidence-sequence",
    ]);
    const unbiased = verdict.rows.filter(({ bias }) => bias === "none");
    expect(unbiased.map(({ estimate }) => estimate.name)).toEqual(["IPS", "SNIPS", "DR"]);
    for (const { estimate, intervals, caveat } of verdict.rows) {
      expect(Math.abs(estimate.value - BANDIT_TRUTH), estimate.name).toBeLessThan(0.03);
      if (caveat !== undefined) continue;
      for (const { low, high, method } of intervals)
        expect(low < BANDIT_TRUTH && BANDIT_TRUTH < high, `${estimate.name} ${method}`).toBe(true);
    }
  });

  test("wrong propensities make estimators disagree that should agree; a wrong model does not", () => {
    const model = predictionsFrom(log, uniform(12_000, 0.95));
    const loud = judgePolicy(log, { rng: rngFrom(2), predictions: model }) as PanelEstimates;
    expect(loud.disagreements).toEqual([]);
    const halved = { ...log, behaviour: log.behaviour.map((p) => p / 2) };
    const { behaviour: _, ...candidates } = log.candidates!;
    const limits = {
      effectiveSize: 0,
      largestShare: 1,
      unsupportedMass: 1,
      meanWeightZ: Number.POSITIVE_INFINITY,
    };
    const wrong = judgePolicy({ ...halved, candidates }, { rng: rngFrom(2), limits }) as PanelEstimates;
    expect(wrong.disagreements.map(({ left, right }) => `${left}/${right}`)).toContain("IPS/SNIPS");
    expect(panelText(wrong)).toContain("DISAGREEMENT: IPS − SNIPS");
  });

  test("estimates that differ by rounding do not disagree", () => {
    const rounding = { left: estimateOf("a", [{ top: uniform(500, 0.3), bottom: undefined }]), shift: 1e-11 };
    const right = estimateOf("b", [{ top: uniform(500, 0.3 + rounding.shift), bottom: undefined }]);
    expect(disagreementsOf([rounding.left, right])).toEqual([]);
  });

  test("a log without variation is refused, unless the range of rewards was stated", () => {
    const same = { ...log, reward: uniform(log.reward.length, 1) };
    expect(kinds(judgePolicy(same, { rng: rngFrom(1) }))).toEqual(["constant-reward"]);
    const stated = judgePolicy(
      { ...same, rewardRange: { low: 0, high: 1 } },
      { rng: rngFrom(1) },
    ) as PanelEstimates;
    for (const { low, high } of stated.rows[3]!.intervals) expect(high - low).toBeGreaterThan(0.001);
  });

  test("a chain gets the chain's estimators", () => {
    const chain = judgePolicy(chainLog(2000, rngFrom(3)), { rng: rngFrom(4) }) as PanelEstimates;
    expect(chain.rows.map((row) => row.estimate.name)).toEqual(["PDIS", "WPDIS", "chain DR", "FQE"]);
    // The interval of FQE does not cover the error of its model.
    for (const { intervals } of chain.rows.slice(0, 3))
      for (const { low, high } of intervals) expect(low < CHAIN_TRUTH && CHAIN_TRUTH < high).toBe(true);
  });

  test("a seed fixes the verdict to the bit", () => {
    const again = () => JSON.stringify(judgePolicy(log, { rng: rngFrom(2) }));
    expect(again()).toBe(again());
  });
});

describe("without logged propensities", () => {
  const unlogged = withoutPropensities(log);

  test("it is an error unless estimation is asked for", () => {
    expect(() => judgePolicy(unlogged, { rng: rngFrom(1) })).toThrow(
      expect.objectContaining({ code: "missing-propensity" }),
    );
  });

  test("estimated propensities come close to the true ones", () => {
    const fitted = withEstimatedPropensities(unlogged, { rng: rngFrom(1) });
    let gap = 0;
    for (let i = 0; i < 4000; i++) gap += Math.abs(fitted.behaviour[i]! - log.behaviour[i]!) / 4000;
    expect(gap).toBeLessThan(0.02);
  });

  test("the result is labelled, covers the truth and carries its sensitivity", () => {
    const verdict = judgePolicy(unlogged, { rng: rngFrom(1), estimatePropensities: true }) as PanelEstimates;
    expect(verdict.certification).toBe("not certified");
    expect(panelText(verdict)).toContain("NOT CERTIFIED");
    const bounds = verdict.sensitivity!;
    expect(bounds.map((b) => b.gamma)).toEqual([1, 1.1, 1.25, 1.5, 2, 3]);
    expect(bounds[0]!.low).toBeCloseTo(bounds[0]!.high, 12);
    expect(bounds[0]!.intervalLow).toBeLessThan(BANDIT_TRUTH);
    expect(bounds[0]!.intervalHigh).toBeGreaterThan(BANDIT_TRUTH);
    for (let i = 1; i < bounds.length; i++) {
      expect(bounds[i]!.low).toBeLessThan(bounds[i - 1]!.low);
      expect(bounds[i]!.high).toBeGreaterThan(bounds[i - 1]!.high);
    }
  });

  test("one-class data is refused with the reason", () => {
    const same = { ...unlogged, candidates: { ...unlogged.candidates!, chosen: new Int32Array(4000) } };
    expect(() => withEstimatedPropensities(same, { rng: rngFrom(1) })).toThrow(
      expect.objectContaining({ code: "one-class" }),
    );
  });

  test("the sensitivity bounds are the true extremes: no choice of odds within Γ goes beyond, and some reach", () => {
    const small = firstRows(log, 9);
    const [bound] = sensitivityBounds(small, { gammas: [2] });
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    // A ratio of linear functions over a box is extreme at a corner: try all 2⁹.
    for (let corner = 0; corner < 512; corner++) {
      const behaviour = small.behaviour.map((p, i) => 1 / (1 + (1 / p - 1) * (corner & (1 << i) ? 2 : 0.5)));
      const value = snips({ ...small, behaviour }).value;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    expect(bound!.low).toBeCloseTo(low, 12);
    expect(bound!.high).toBeCloseTo(high, 12);
  });
});

function kinds(verdict: PanelResult): string[] {
  return verdict.kind === "refused" ? verdict.faults.map((fault) => fault.kind) : [];
}

function withoutPropensities(full: LoggedDecisions): LoggedDecisions {
  const { count, chosen, target } = full.candidates!;
  return { ...full, behaviour: full.behaviour.map(() => Number.NaN), candidates: { count, chosen, target } };
}

function firstRows(full: LoggedDecisions, rows: number): LoggedDecisions {
  return {
    reward: full.reward.slice(0, rows),
    behaviour: full.behaviour.slice(0, rows),
    target: full.target.slice(0, rows),
  };
}
