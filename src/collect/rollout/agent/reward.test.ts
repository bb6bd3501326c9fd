import { describe, expect, it } from "vitest";
import { readOutput, totalOf } from "./output.ts";
import {
  compositeReward,
  costTerm,
  latencyTerm,
  type RewardInput,
  retriesTerm,
  rewardOf,
  terminalFailureTerm,
  timeoutTerm,
  verificationTerm,
} from "./reward.ts";

const input: RewardInput = {
  task: { payload: { question: "2 + 2" }, label: 4 },
  ending: { kind: "terminal" },
  claimed: null,
  metrics: {},
  finalState: 4,
  usage: { calls: 2, promptTokens: 10, completionTokens: 5, costUsd: 0.02 },
  durationMs: 500,
  attempt: 2,
};
const verify = verificationTerm(({ finalState, task }) => finalState === task.label);
const make = (clip?: readonly [number, number]) =>
  compositeReward({
    name: "grade",
    terms: [
      verify,
      timeoutTerm({ weight: 0.5 }),
      retriesTerm({ weight: 0.1 }),
      costTerm({ weight: 0.25, perUsd: 0.08 }),
      latencyTerm({ weight: 0.5, perMs: 1000 }),
      terminalFailureTerm({ weight: 1 }),
    ],
    ...(clip === undefined ? {} : { clip }),
  });

describe("a composite reward", () => {
  it("is the weighted sum of its terms (by hand: 1 − 0.1 − 0.25·0.25 − 0.5·0.5)", async () => {
    const scores = await make().score(input);
    expect(scores.map(({ name, value }) => [name, value])).toEqual([
      ["verification", 1],
      ["timeout", 0],
      ["retries", -1],
      ["cost", -0.25],
      ["latency", -0.5],
      ["terminal-failure", 0],
    ]);
    expect(totalOf(scores)).toBeCloseTo(0.5875, 12);
  });

  it("stays within its bounds, and the scores still add up", async () => {
    const scores = await make([0.9, 1]).score(input);
    expect(scores.at(-1)?.name).toBe("clip");
    expect(totalOf(scores)).toBeCloseTo(0.9, 12);
  });

  it("has no cost term where the cost of a call is not known: it is not 0", async () => {
    const named = async (unpriced?: number) => {
      const usage = { ...input.usage!, ...(unpriced === undefined ? {} : { unpriced }) };
      return (await make().score({ ...input, usage })).map(({ name }) => name);
    };
    expect(await named()).toContain("cost");
    expect(await named(1)).not.toContain("cost");
  });

  it("costs a policy its own failures only", async () => {
    const failed = (owner: "agent" | "provider") =>
      make().score({ ...input, ending: { kind: "failed", owner, message: "no" } });
    const failureOf = async (owner: "agent" | "provider") =>
      (await failed(owner)).find(({ name }) => name === "terminal-failure")?.value;
    expect([await failureOf("agent"), await failureOf("provider")]).toEqual([-1, 0]);
    expect((await failed("agent"))[0]).toMatchObject({ name: "verification", value: 0 });
  });

  it("is named by what it consists of: any weight, bound, term or function changes the digest", () => {
    const digests = [
      make(),
      make([0, 1]),
      compositeReward({ name: "grade", terms: [verify] }),
      compositeReward({ name: "grade", terms: [{ ...verify, weight: 2 }] }),
      compositeReward({ name: "other", terms: [verify] }),
      compositeReward({ name: "grade", terms: [costTerm({ weight: 1, perUsd: 1 })] }),
      compositeReward({ name: "grade", terms: [costTerm({ weight: 1, perUsd: 2 })] }),
      rewardOf("f", () => 1),
      rewardOf("f", () => 2),
      rewardOf("f", () => 2, { version: "2" }),
    ].map(({ digest }) => digest);
    expect(new Set(digests).size).toBe(digests.length);
    expect(make().digest).toBe(digests[0]);
  });

  it("leaves out a term that has nothing to say; with none left it is unlabelled, not 0", async () => {
    const silent = compositeReward({
      name: "late",
      terms: [{ name: "human", weight: 1, value: () => null }],
    });
    expect(totalOf(await silent.score(input))).toBeNull();
  });

  it("of a string is none: an agent returns a number or an object", () => {
    expect(() => readOutput("1")).toThrow("it returned a string, which is neither a number nor an object");
  });

  it.each([
    [1e300, 1],
    [1e200, 1e200],
    [3.5e38, 1],
  ])(
    "that overflows is the task's failure, and one that an agent reports the agent's: %s × %s",
    async (value, weight) => {
      const reward = compositeReward({ name: "big", terms: [{ name: "big", weight, value: () => value }] });
      await expect(reward.score(input)).rejects.toMatchObject({ code: "failed-task" });
      expect(() => readOutput({ reward: { big: { value, weight } } })).toThrow("more than a 32-bit float");
    },
  );

  it.each([
    ["twice", () => compositeReward({ name: "x", terms: [verify, verify] })],
    ["clips to", () => compositeReward({ name: "x", terms: [verify], clip: [1, 0] })],
    ["not a positive", () => costTerm({ weight: 1, perUsd: 0 })],
    ["the weight of", () => compositeReward({ name: "x", terms: [{ ...verify, weight: Number.NaN }] })],
  ])("refuses what cannot be meant: %s", (text, build) => {
    expect(build).toThrow(text);
  });
});
