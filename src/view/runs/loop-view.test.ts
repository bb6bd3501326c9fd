import { expect, test } from "vitest";
import { renderLoopProgress, transitionFacts } from "./loop-view.ts";

test("rewards name what they are a mean over: observed ones a rollout, estimates a decision", () => {
  const window = { window: 1, rollouts: 40, collectedBy: "behaviour" };
  const scored = { ...window, state: "scored", rows: 40, rewardMean: 0.7845 };
  expect(transitionFacts(scored)).toBe("40 rows to train from, observed reward 0.7845 a rollout");
  const estimate = { value: 0.4736, low: 0.4, high: 0.5 };
  const judged = { ...window, state: "judged", outcome: "pass", estimate, estimateUnit: "decision" } as const;
  expect(transitionFacts(judged)).toBe("pass, estimate 0.4736 [0.4000, 0.5000] a decision");
  expect(renderLoopProgress({ window: 1, done: 3, total: 40, meanReward: 0.5 }, 2)).toMatch(
    /observed reward 0\.500 a rollout$/,
  );
});
