import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { digestJson, manualClock, parseId, RollbookError, systemClock } from "../../../base/index.ts";
import {
  Assignment,
  checkBinding,
  type Ending,
  openRecord,
  RolloutContent,
  RolloutEnvelope,
  sampleSeed,
  seal,
  Task,
} from "../../../contract/index.ts";
import { memoryStore } from "../../../store/index.ts";
import {
  defineRollout,
  functionAgent,
  type RolloutDefinition,
  type RolloutFunction,
} from "../agent/agent.ts";
import { cutBy, failedBy } from "../agent/failure.ts";
import { rewardOf } from "../agent/reward.ts";
import { executeRollout, type RolloutJob } from "./executor.ts";
import { bookRecorder } from "./recorder.ts";

const environment = "env.test@1" as Task["environment"];
const task = seal(Task, {
  ...{ id: parseId("t-1"), environment, payload: { question: "2+2", deep: { a: [1] } }, label: 4 },
  dataSource: "synthetic",
});
const assignment = seal(Assignment, {
  ...{ id: parseId("a-1"), environment, group: parseId("g-1"), samples: 2, seed: 1n },
  task: { id: task.record.id, digest: task.digest },
});
const job: RolloutJob = {
  rolloutId: parseId("r-1"),
  task: task.record,
  taskDigest: task.digest,
  assignment: { digest: assignment.digest, sample: 1 },
  group: parseId("g-1"),
  seed: sampleSeed(assignment.digest, 1),
  attempt: 1,
  config: { required: { exp_id: "e", input_id: "t-1" } },
  limits: {},
};

async function execute(
  run: RolloutFunction | RolloutDefinition,
  given: Partial<RolloutJob> = {},
  signal?: AbortSignal,
) {
  const store = memoryStore();
  const execution = await executeRollout(
    { ...job, ...given },
    {
      agent: functionAgent(run, { name: "agent.ts", digest: digestJson("test.agent.v1", "x") }),
      recorder: bookRecorder(),
      clock: given.limits?.timeMs === undefined ? manualClock(5) : systemClock,
      worker: parseId("w"),
      graceMs: 50,
      ...(signal === undefined ? {} : { signal }),
    },
  );
  const recorded = await execution.seal();
  for (const { kind, bytes } of recorded.blobs) store.put(kind, bytes);
  const envelope = openRecord(RolloutEnvelope, (await store.get(recorded.envelope))!.bytes);
  const content = openRecord(RolloutContent, (await store.get(envelope.content))!.bytes);
  return { execution, envelope, content, store };
}

describe("executeRollout", () => {
  it("seals an artifact that is bound to its assignment, task and seed, with the agent as its one choice", async () => {
    const { content, envelope } = await execute(() => 0.5);
    checkBinding(content, assignment.record, assignment.digest);
    expect(content.scores).toEqual([{ name: "reward", value: 0.5, weight: 1 }]);
    expect(content.streams[0]).toMatchObject({
      level: "step",
      family: "agent",
      steps: [{ reward: 0.5, chosen: 0 }],
    });
    expect([content.ending.kind, envelope.worker]).toEqual(["terminal", "w"]);
  });

  it("gives the payload verbatim, frozen at every depth, without label, and the configuration beside it", async () => {
    let seen: unknown;
    const { content } = await execute(
      (payload, { rolloutConfig, baseUrl }) => {
        seen = { payload: structuredClone(payload), rolloutConfig, baseUrl };
        (payload.deep as { a: number[] }).a.push(2);
        return 1;
      },
      {
        config: {
          required: { exp_id: "e", input_id: "t-1" },
          extra: { base_url: "x", retries: 1, model_id: "x" },
          endpoint: { base_url: "http://y", model_id: "m" },
          overrides: { model_id: "n", sampling_params: { temperature: 0.5 } },
        },
      },
    );
    expect(seen).toEqual({
      payload: task.record.payload,
      rolloutConfig: {
        ...{ exp_id: "e", input_id: "t-1", retries: 1, base_url: "http://y", model_id: "n" },
        sampling_params: { temperature: 0.5 },
      },
      baseUrl: "http://y",
    });
    expect(content.ending).toMatchObject({
      kind: "failed",
      owner: "agent",
      message: expect.stringContaining("extensible"),
    });
    expect(task.record.payload).toEqual({ question: "2+2", deep: { a: [1] } });
    expect(content.sampling).toEqual({ temperature: 0.5 });
  });

  it("repeats the same draws for the same sample, whatever the attempt", async () => {
    const draw: RolloutFunction = (_, { rng }) => rng.float();
    const [first, second, other] = [
      await execute(draw),
      await execute(draw, { attempt: 2 }),
      await execute(draw, { seed: 9n }),
    ];
    expect(first.envelope.content).toBe(second.envelope.content);
    expect(first.content.scores).not.toEqual(other.content.scores);
  });

  const endings: [string, () => never, Ending][] = [
    ["a plain error", () => raise(new Error("oops")), { kind: "failed", owner: "agent", message: "oops" }],
    [
      "an owned one",
      () => raise(failedBy("provider", "gone")),
      { kind: "failed", owner: "provider", message: "gone" },
    ],
    [
      "an owned one deep in the causes",
      () => raise(new Error("outer", { cause: failedBy("task", "no answer") })),
      { kind: "failed", owner: "task", message: "outer" },
    ],
    ["a limit", () => raise(cutBy("tokens")), { kind: "truncated", limit: "tokens" }],
  ];
  it.each(endings)("attributes %s, and marks what is another's by its word", async (_name, run, ending) => {
    const { content } = await execute(run);
    const others = ending.kind === "failed" && ending.owner !== "agent";
    expect(content.ending).toEqual(others ? { ...ending, declaredBy: "agent" } : ending);
    expect(content.scores).toEqual([]);
  });

  it("cuts at the time limit: the signal aborts, and what does not stop is left behind", async () => {
    const limits = { timeMs: 30 };
    const stops = await execute((_, { signal }) => sleep(60_000, undefined, { signal }).then(() => 1), {
      limits,
    });
    const ignores = await execute(() => new Promise<number>(() => {}), { limits });
    const late = await execute(() => sleep(50).then(() => ({ reward: 1 })), { limits });
    for (const { content } of [stops, ignores, late])
      expect(content.ending).toEqual({ kind: "truncated", limit: "time" });
    expect(late.execution.scores).toMatchObject([{ value: 1 }]);
  });

  it("cuts at the turn limit", async () => {
    let turns = 0;
    const { content } = await execute(
      (_, context) => {
        for (;;) turns = context.nextTurn();
      },
      { limits: { maxTurns: 3 } },
    );
    expect([content.ending, turns]).toEqual([{ kind: "truncated", limit: "turns" }, 3]);
  });

  it("says cancelled when it is", async () => {
    const { execution } = await execute(
      (_, { signal }) => sleep(60_000, 1, { signal }),
      {},
      AbortSignal.timeout(20),
    );
    expect(execution.ending).toEqual({ kind: "cancelled" });
  });

  it("reads lists and named terms, keeps metrics with weight 0 and the final state by digest", async () => {
    const list = await execute(() => ({
      reward: [0, 0.25, 1],
      metrics: { steps: 3 },
      finalState: { answer: 4 },
    }));
    expect(list.content.scores.map(({ name, value, weight }) => [name, value, weight])).toEqual([
      ["reward-1", 0, 0],
      ["reward-2", 0.25, 0],
      ["reward", 1, 1],
      ["steps", 3, 0],
    ]);
    const state = await list.store.get(list.content.finalState!);
    expect(Buffer.from(state!.bytes).toString()).toBe('{"answer":4}');
    const terms = await execute(() => ({ reward: { right: 1, short: { value: 0.5, weight: 0.2 } } }));
    expect(terms.content.streams[0]).toMatchObject({ steps: [{ reward: 1.1 }] });
  });

  it("leaves a rollout without a reward unlabelled", async () => {
    const { content } = await execute(() => undefined);
    expect(content.scores).toEqual([]);
    expect(content.streams[0]).toMatchObject({ steps: [{ reward: null }] });
  });

  it.each([
    ["a reward that is no number", { reward: Number.NaN }],
    ["an unknown field", { reword: 1 }],
    ["streams no artifact can hold", { reward: 1, streams: [{ level: "step", family: "x", steps: [] }] }],
    ["a foreign ending", { ending: { kind: "exploded" } }],
    ["a status of failure", { status_code: 500, stop_reason: "boom", rewards: 0 }],
  ])("seals %s as the agent's failure", async (_name, output) => {
    const { content } = await execute(() => output as never);
    expect(content.ending).toMatchObject({ kind: "failed", owner: "agent" });
  });

  it("lets a scorer see the label and count; what the agent claims is kept with weight 0", async () => {
    const scorer = rewardOf("graded", ({ finalState, task: { label }, claimed }) =>
      finalState === label && claimed === 9 ? 1 : 0,
    );
    const { content } = await execute(defineRollout(() => ({ reward: 9, finalState: 4 }), { scorer }));
    expect(content.scores).toEqual([
      { name: "graded", value: 1, weight: 1, scorer: scorer.digest },
      { name: "reward", value: 9, weight: 0 },
    ]);
  });

  it("blames the task when its reward cannot be computed", async () => {
    const scorer = rewardOf("broken", () => raise(new Error("no label")));
    const { content } = await execute(defineRollout(() => 1, { scorer }));
    expect(content.ending).toMatchObject({ kind: "failed", owner: "task" });
  });

  it("blames the sandbox when that breaks while the reward is computed, and an agent never", async () => {
    const owners = ["sandbox-engine-died", "failed-infrastructure", "failed-agent"].map(async (code) => {
      const scorer = rewardOf("graded", () => raise(new RollbookError(code, {}, "gone")));
      return (await execute(defineRollout(() => 1, { scorer }))).content.ending;
    });
    expect(await Promise.all(owners)).toMatchObject([
      { owner: "sandbox" },
      { owner: "infrastructure" },
      { owner: "task" },
    ]);
  });
});

function raise(error: unknown): never {
  throw error;
}
