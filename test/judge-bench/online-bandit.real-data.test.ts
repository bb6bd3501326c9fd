import { expect, test } from "vitest";
import { makeSkipGrams } from "../../bench/support/judge/skip-grams.ts";
import { readVowpalCb } from "../../src/convert/vowpal-text.ts";
import { makeOnlineBandit } from "../../src/learn/online/online-bandit.ts";
import { realData } from "../support/real-data.ts";

const rcv1 = realData("vw/rcv1_raw_cb_small.vw");
const SIZE = 1 << 20;

test.skipIf(rcv1 === undefined)("one online pass over rcv1 loses at most 0.14 by DR", async () => {
  // Vowpal Wabbit's reference for the same file and options: 0.132504.
  const grams = makeSkipGrams({ buckets: SIZE, skips: 4 });
  const options = { actions: 2, kind: "dr", rate: 0.25, size: SIZE, rewards: { low: -1, high: 0 } } as const;
  const bandit = makeOnlineBandit(options);
  let [loss, rows] = [0, 0];
  for await (const { context, action, reward, propensity } of readVowpalCb(rcv1!, { actions: 2 })) {
    loss -= bandit.visit(grams(context), { action, reward: reward!, propensity: propensity! }).dr;
    rows++;
  }
  expect(rows).toBe(1000);
  expect(loss / rows).toBeLessThanOrEqual(0.14);
});
