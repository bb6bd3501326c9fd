import { describe, expect, it } from "vitest";
import { handTasks } from "../../../../test/support/sim-tasks.ts";
import type { Json } from "../../../base/index.ts";
import { totalOf } from "../../rollout/agent/output.ts";
import type { RewardInput, RolloutUsage } from "../../rollout/agent/reward.ts";
import { DEFAULT_MODELS } from "./models.ts";
import { billOf, DEFAULT_WEIGHTS, type PaidCall, rewardOfParts, simScorer } from "./reward.ts";

const { visible, oracle } = handTasks(1)[0]!.task;
const scorer = simScorer({ grade: async () => 0.5, models: DEFAULT_MODELS });
const calls: readonly PaidCall[] = [
  { model: "sim-coder", promptTokens: 900, completionTokens: 40 },
  { model: "sim-coder", promptTokens: 1000, completionTokens: 10 },
];
const bill = billOf(calls, DEFAULT_MODELS)!;
const recorded: RolloutUsage = { calls: 2, promptTokens: 1900, completionTokens: 50, costUsd: bill.costUsd };

async function earned(state: object | undefined, usage?: RolloutUsage): Promise<number | null> {
  const input: RewardInput = {
    task: { payload: visible as never, label: oracle },
    ...{ ending: { kind: "terminal" }, claimed: null, metrics: {}, durationMs: 1, attempt: 1 },
    ...(state === undefined ? {} : { finalState: state as Json }),
    ...(usage === undefined ? {} : { usage }),
  };
  return totalOf(await scorer.score(input));
}

const slowest = rewardOfParts(0.5, { costUsd: bill.costUsd, latencyMs: 1e9 }, DEFAULT_WEIGHTS);

describe("what a rollout is charged", () => {
  it("is what the gateway recorded, with the latency that its models declare", async () => {
    expect(await earned({ files: {}, calls }, recorded)).toBe(rewardOfParts(0.5, bill, DEFAULT_WEIGHTS));
  });

  it.each([
    ["are left out", undefined],
    ["are fewer", calls.slice(1)],
    ["are one", [{ model: "sim-coder", promptTokens: 1900, completionTokens: 50 }]],
    ["name a faster model", calls.map((call) => ({ ...call, model: "sim-small" }))],
    ["name an unknown model", calls.map((call) => ({ ...call, model: "nobody" }))],
    ["count less than nothing", calls.map((call) => ({ ...call, completionTokens: -1e9 }))],
    ["are no list", 5],
    ["are no calls", [null, "call"]],
  ])("is the slowest where an agent's calls %s", async (_, said) => {
    expect(await earned({ files: {}, ...(said === undefined ? {} : { calls: said }) }, recorded)).toBe(
      slowest,
    );
  });

  it("is never a gain: without a gateway, a bill below nothing is no bill", async () => {
    const said = [{ model: "sim-large", promptTokens: 0, completionTokens: -1e9 }];
    expect(await earned({ files: {}, calls: said })).toBe(0.5);
    expect(await earned({ files: {}, calls })).toBe(rewardOfParts(0.5, bill, DEFAULT_WEIGHTS));
  });
});
