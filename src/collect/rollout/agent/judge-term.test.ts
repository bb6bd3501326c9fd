import { describe, expect, it, onTestFinished } from "vitest";
import { startUpstream } from "../../../../examples/sums/upstream.mjs";
import { TestGateway, TOKEN } from "../../../../test/support/gateway.ts";
import { type GraderOptions, judgeTerm } from "./judge-term.ts";
import { compositeReward, type RewardInput } from "./reward.ts";

const input: RewardInput = {
  task: { payload: { question: "2 + 2" } },
  ending: { kind: "terminal" },
  claimed: null,
  metrics: {},
  finalState: "4",
  durationMs: 1,
  attempt: 1,
};

async function world(answers: string[], over: Partial<GraderOptions> = {}) {
  const asked: { messages: { content: string }[]; temperature: number }[] = [];
  const upstream = await startUpstream({
    script: ((body: (typeof asked)[number]) => {
      asked.push(body);
      return answers.shift() ?? "no idea";
    }) as never,
  });
  onTestFinished(() => upstream.close());
  const test = await TestGateway.open({
    upstreams: { main: { baseUrl: upstream.url } },
    models: { grader: { upstream: "main", price: { prompt: 1000, completion: 1000 } } },
  });
  const term = judgeTerm({
    gateway: { url: test.gateway.url, token: TOKEN },
    model: "grader",
    question: ({ task, finalState }) =>
      `Is ${String(finalState)} right for ${String(task.payload.question)}?`,
    name: "correct",
    weight: 2,
    ...over,
  });
  return { test, asked, scorer: compositeReward({ name: "graded", terms: [term] }) };
}

describe("a model as a judge", () => {
  it("gives a score that names its scorer, and its calls are a sealed rollout that claims no reward", async () => {
    const { test, asked, scorer } = await world(['I think so {"why": 1}: {"score": 0.75}']);
    expect(await scorer.score(input)).toEqual([
      { name: "correct", value: 0.75, weight: 2, scorer: scorer.digest },
    ]);
    expect(asked[0]).toMatchObject({ temperature: 0, messages: [{}, { content: "Is 4 right for 2 + 2?" }] });
    const [artifact] = await test.artifacts();
    expect(artifact).toMatchObject({
      task: { id: "correct" },
      ending: { kind: "terminal" },
      scores: [{ name: "correct", value: 0.75, weight: 0 }],
    });
    expect(artifact!.calls).toHaveLength(1);
    expect((await test.verify()).problems).toEqual([]);
  });

  it("is asked again if its answer holds no score on the scale, and fails as the provider in the end", async () => {
    const { scorer, asked } = await world(["fine", '{"score": 7}'], { scale: [0, 10] });
    expect((await scorer.score(input))[0]!.value).toBe(7);
    expect(asked).toHaveLength(2);
    const other = await world(['{"score": 7}', '{"score": "1"}']);
    await expect(other.scorer.score(input)).rejects.toMatchObject({ code: "failed-provider" });
    const [artifact] = await other.test.artifacts();
    expect(artifact!.ending).toMatchObject({ kind: "failed", owner: "provider" });
  });

  it("stays within its budget", async () => {
    const { scorer, asked } = await world(["no score here"], { budgetUsd: 0.001, attempts: 5 });
    await expect(scorer.score(input)).rejects.toThrow("402");
    expect(asked.length).toBeLessThan(5);
  });

  it("asks nothing about a rollout that failed", async () => {
    const { scorer, asked } = await world([]);
    const failed = (owner: "agent" | "provider") => ({
      ...input,
      ending: { kind: "failed", owner, message: "x" } as const,
    });
    expect((await scorer.score(failed("agent")))[0]!.value).toBe(0);
    expect(await scorer.score(failed("provider"))).toEqual([]);
    expect(asked).toEqual([]);
  });

  it("has a digest over model, question, scale, parameters and version, and not over the gateway's address", () => {
    const digest = (over: Partial<GraderOptions>) => {
      const options = { gateway: "http://127.0.0.1:1", model: "m", question: () => "a", ...over };
      return compositeReward({ name: "n", terms: [judgeTerm(options)] }).digest;
    };
    expect(digest({ gateway: "http://127.0.0.1:2" })).toBe(digest({}));
    const others = [
      ...[{ model: "n" }, { question: () => "b" }, { scale: [0, 2] as const }],
      ...[{ parameters: { temperature: 1 } }, { version: "2" }],
    ];
    expect(new Set([{}, ...others].map(digest)).size).toBe(others.length + 1);
    expect(() => digest({ scale: [1, 1] })).toThrow("must rise");
  });
});
