import { expect, test } from "vitest";
import { BANDIT_TRUTH, banditLog, CHAIN_TRUTH, chainLog, exploringWorld } from "../../../test/ope/worlds.ts";
import { rngFrom } from "../../base/rng.ts";
import { chainDr } from "./estimators/chain-dr.ts";
import { doublyRobust } from "./estimators/doubly-robust.ts";
import type { Estimate } from "./estimators/estimate.ts";
import { ips } from "./estimators/ips.ts";
import { perDecisionIs } from "./estimators/per-decision-is.ts";
import { snips } from "./estimators/snips.ts";
import { weightedPerDecisionIs } from "./estimators/weighted-per-decision-is.ts";
import { bootstrap, percentileInterval } from "./intervals/bootstrap.ts";
import { correctedInterval } from "./intervals/corrected-interval.ts";
import { studentInterval } from "./intervals/student-interval.ts";
import { crossFitQ } from "./models/fitted-q.ts";
import { crossFitRewards } from "./models/reward-model.ts";

const LOGS = 300;

/** 95 % of 300 is 285; five standard deviations of that count are 19. */
const LEAST = 266;

test("95 % intervals hold the truth in 95 % of logs: bandits", () => {
  const hits = coverage(BANDIT_TRUTH, (run) => {
    const log = banditLog(600, rngFrom(run));
    return [ips(log), snips(log), doublyRobust(log, crossFitRewards(log, { rng: rngFrom(run) }))];
  });
  for (const [key, count] of hits) expect(count, key).toBeGreaterThanOrEqual(LEAST);
  for (const [key, count] of hits) expect(count, key).toBeLessThan(LOGS);
});

test("DR is as good as SNIPS with little exploration, where one or a few rows have another choice", () => {
  const { truth, logOf } = exploringWorld(0.02);
  const errors = Array.from({ length: 100 }, (_, run) => {
    const log = logOf(200, rngFrom(run));
    const dr = doublyRobust(log, crossFitRewards(log, { rng: rngFrom(run) }));
    const { low, high } = correctedInterval(dr);
    const isHeld = low <= truth && truth <= high;
    return { dr: (dr.value - truth) ** 2, snips: (snips(log).value - truth) ** 2, isHeld };
  });
  const total = (of: "dr" | "snips") => errors.reduce((sum, each) => sum + each[of], 0);
  expect(Math.sqrt(total("dr") / total("snips"))).toBeLessThan(1.1);
  expect(errors.filter(({ isHeld }) => isHeld).length).toBeGreaterThanOrEqual(88);
});

test("95 % intervals hold the truth in 95 % of logs: chains", () => {
  const hits = coverage(CHAIN_TRUTH, (run) => {
    const log = chainLog(400, rngFrom(5000 + run));
    return [
      perDecisionIs(log),
      weightedPerDecisionIs(log),
      chainDr(log, crossFitQ(log, { rng: rngFrom(run) })),
    ];
  });
  for (const [key, count] of hits) expect(count, key).toBeGreaterThanOrEqual(LEAST);
  for (const [key, count] of hits) expect(count, key).toBeLessThan(LOGS);
});

function coverage(truth: number, estimatesOf: (run: number) => Estimate[]): Map<string, number> {
  const hits = new Map<string, number>();
  for (let run = 0; run < LOGS; run++) {
    const estimates = estimatesOf(run);
    const draws = bootstrap(estimates, { rng: rngFrom(run), replicates: 500 });
    estimates.forEach((estimate, i) => {
      for (const { method, low, high } of [percentileInterval(draws[i]!), studentInterval(estimate)]) {
        const key = `${estimate.name} ${method}`;
        hits.set(key, (hits.get(key) ?? 0) + (low <= truth && truth <= high ? 1 : 0));
      }
    });
  }
  return hits;
}
