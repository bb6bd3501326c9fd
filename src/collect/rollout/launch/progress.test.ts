import { expect, it } from "vitest";
import { LaunchTally } from "./progress.ts";
import type { RolloutResult } from "./result.ts";

const dead = {
  state: "dead",
  reason: "lost",
  givenUp: { runs: 0, promptTokens: 0, completionTokens: 0, costUsd: 0 },
} as RolloutResult;

it("the estimate reaches to the end of the claims of other processes, while rollouts are left", () => {
  let nowMs = 0;
  const tally = new LaunchTally({ nowMs: () => nowMs });
  tally.total = 2;
  tally.claimedUntilMs = 20_000;
  expect(tally.now().etaMs).toBe(null);
  tally.add(dead);
  const etaAt = (atMs: number) => {
    nowMs = atMs;
    return tally.now().etaMs;
  };
  expect([etaAt(1_000), etaAt(5_000), etaAt(30_000)]).toEqual([19_000, 15_000, 30_000]);
  tally.add(dead);
  expect(etaAt(6_000)).toBe(0);
});
