import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as bubblewrap from "../../../../scripts/setup/sandbox.mjs";
import { describeNeeding } from "../../../../test/support/needs.ts";
import { sealedOnly, simBook } from "../../../../test/support/sim-run.ts";
import { handTasks } from "../../../../test/support/sim-tasks.ts";
import { digestJson } from "../../../base/index.ts";
import type { RolloutContent, StepStream } from "../../../contract/index.ts";
import { functionAgent } from "../../rollout/agent/agent.ts";
import type { SealedResult } from "../../rollout/launch/result.ts";
import { openSandbox } from "../../sandbox/open.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { environmentPackage } from "../prove/environment-package.ts";
import { type Grader, proofGrader, sandboxGrader } from "../prove/graders.ts";
import { DEFAULT_MODELS } from "../world/models.ts";
import { simScorer } from "../world/reward.ts";
import { turnsOf } from "../world/turns.ts";
import { makeWorld } from "../world/world.ts";
import { requestSeed } from "./ask-model.ts";
import { behaviourRouter, policyOfRouter, ROUTER_FAMILY } from "./behaviour.ts";

const names = DEFAULT_MODELS.map(({ name }) => name);
const world = makeWorld({ tasks: handTasks(6), models: DEFAULT_MODELS });
const uniform = behaviourRouter("uniform", { models: names });

const route = { kind: "router" as const, router: uniform };

/** Returns the models that answered. */
async function expectExact(
  results: readonly SealedResult[],
  contentOf: (result: SealedResult) => Promise<RolloutContent>,
): Promise<Set<string>> {
  const seen = new Set<string>();
  for (const result of results) {
    const content = await contentOf(result);
    const [stream] = content.streams as [StepStream];
    expect([content.streams.length, stream.family, stream.level]).toEqual([1, ROUTER_FAMILY, "step"]);
    const step = stream.steps[0]!;
    seen.add(step.candidates[step.chosen]!.id);
    const asked = policyOfRouter(uniform)(world.contexts[result.row]!, world.candidates);
    expect(step.candidates.map(({ probability }) => probability)).toEqual(asked);
    const told = world.outcomes(result.row, step.chosen).outcome(requestSeed(content.seed));
    expect([result.reward, step.reward, result.usage.calls]).toEqual([told.reward, told.reward, told.calls]);
    expect(result.usage.costUsd).toBeCloseTo(told.costUsd, 12);
    expect(content.finalState).toBeDefined();
  }
  return seen;
}

describe("executed in a sandbox", () => {
  let sandbox: Sandbox;
  let grader: Grader;
  beforeAll(async () => {
    sandbox = await openSandbox({ engine: "quickjs", workers: 2 });
    grader = sandboxGrader(sandbox);
  });
  afterAll(() => sandbox.close());

  it("every proof holds: start, reference and mutants do what the facts say", async () => {
    for (const { task, proof } of world.tasks.slice(0, 3)) {
      const all = [{}, task.solutions.reference, ...task.solutions.mutants.map(({ files }) => files)];
      const facts = [proof.start, proof.reference, ...proof.mutants];
      for (const [i, files] of all.entries()) {
        const { passed } = await grader.runTests(task.visible, files);
        expect({ passesVisible: passed, hidden: await grader.grade(task, files) }).toEqual(facts[i]);
      }
    }
  });

  it("rollouts earn exactly what the outcome of their seed says, and their choices have the router's probabilities", async () => {
    const { run, contentOf } = await simBook();
    const results = sealedOnly(await run({ world, grader, route, samples: 6 }));
    expect(results).toHaveLength(36);
    expect((await expectExact(results, contentOf)).size).toBe(names.length);
  });

  it("the same run again does nothing, and one with other weights is another run", async () => {
    const { run } = await simBook();
    const few = makeWorld({ tasks: handTasks(2), models: DEFAULT_MODELS });
    const first = sealedOnly(await run({ world: few, grader }));
    const again = sealedOnly(await run({ world: few, grader }));
    expect(again.map(({ earlier }) => earlier)).toEqual([true, true]);
    expect(again.map(({ envelope }) => envelope).sort()).toEqual(
      first.map(({ envelope }) => envelope).sort(),
    );
    const dear = makeWorld({
      ...few,
      weights: { cost: { weight: 1, perUsd: 0.001 }, latency: { weight: 0, perMs: 1 } },
    });
    expect(sealedOnly(await run({ world: dear, grader })).map(({ earlier }) => earlier)).toEqual([
      false,
      false,
    ]);
  });

  it("the reference agent earns full quality without a model, and lies of an agent earn nothing", async () => {
    const { run } = await simBook();
    for (const result of sealedOnly(await run({ world, grader, agent: "reference" })))
      expect(result.reward).toBe(1);
    const cheat = functionAgent(() => ({ reward: 1, finalState: { files: { "check.mjs": "" } } }), {
      name: "cheat",
      digest: digestJson("test.agent.v1", "cheat"),
    });
    for (const result of sealedOnly(await run({ world, grader, agent: cheat })))
      expect(result.reward).toBe(0);
  });
});

describe("from proofs alone", () => {
  it("a run with other limits is in another environment, which states them", async () => {
    const { run, contentOf, book } = await simBook();
    const few = makeWorld({ tasks: handTasks(1), models: DEFAULT_MODELS });
    const packageIn = async (limits: { maxTurns: number }) => {
      const [result] = sealedOnly(await run({ world: few, grader: proofGrader(few.tasks), limits }));
      return (await contentOf(result!)).environment;
    };
    expect(await packageIn({ maxTurns: 1 })).not.toBe(await packageIn({ maxTurns: 12 }));
    const scorer = simScorer({ grade: async () => 1, models: few.models });
    const { record, digest } = environmentPackage(few, {
      ...{ grader: proofGrader(few.tasks), scorer, limits: { maxTurns: 1 } },
    });
    expect([record.execution.maxTurns, record.execution.timeBudgetMs]).toEqual([1, 120_000]);
    expect([record.key, await book.has(digest)]).toEqual([await packageIn({ maxTurns: 1 }), true]);
  });

  it("rollouts earn the same without a sandbox, and their environment says so", async () => {
    const { run, contentOf } = await simBook();
    const results = sealedOnly(await run({ world, grader: proofGrader(world.tasks), route, samples: 4 }));
    await expectExact(results, contentOf);
    for (const result of results)
      expect((await contentOf(result)).environment).toMatch(/^sim-proofs@[0-9a-f]{12}$/);
  });

  it("a router that is asked for every turn leaves a decision for every call", async () => {
    const { run, contentOf } = await simBook();
    const everyTurn = { ...route, everyTurn: true };
    for (const result of sealedOnly(
      await run({ world, grader: proofGrader(world.tasks), route: everyTurn }),
    )) {
      const [stream] = (await contentOf(result)).streams as [StepStream];
      expect(stream.steps.map(({ call }) => call)).toEqual([...Array(result.usage.calls).keys()]);
      expect(stream.steps.map(({ reward }) => reward)).toEqual([
        ...stream.steps.slice(1).map(() => 0),
        result.reward,
      ]);
    }
  });

  it("a rollout that is routed at every turn earns what the closed form says of its seed and choices", async () => {
    const { run, contentOf } = await simBook();
    const everyTurn = { ...route, everyTurn: true };
    const results = await run({ world, grader: proofGrader(world.tasks), route: everyTurn, samples: 3 });
    for (const result of sealedOnly(results)) {
      const content = await contentOf(result);
      const [stream] = content.streams as [StepStream];
      const turns = turnsOf(world, result.row);
      let at = turns.begin;
      let reward: number | undefined;
      for (const { chosen, seen } of stream.steps) {
        expect(turns.context(at).fields.messages).toBe(seen?.messages);
        const branch = turns.follow(at, chosen, requestSeed(content.seed));
        if (branch.kind === "end") reward = branch.reward;
        else at = branch.next;
      }
      expect(reward).toBeCloseTo(result.reward!, 12);
    }
  });

  it("files that nobody proved are refused as the task's failure, not guessed at", async () => {
    const { run } = await simBook();
    const agent = functionAgent(() => ({ finalState: { files: { "solution.mjs": "new" }, calls: [] } }), {
      name: "own",
      digest: digestJson("test.agent.v1", "own"),
    });
    const [result] = sealedOnly(await run({ world, grader: proofGrader(world.tasks), agent }));
    expect(result!.ending).toMatchObject({ kind: "failed", owner: "task" });
    expect(result!.reward).toBeNull();
  });
});

/** Descendant processes that build sandboxes. */
function builders(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const [, parent] = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
        return Number(parent) === process.pid && /bwrap/.test(readFileSync(`/proc/${pid}/cmdline`, "utf8"));
      } catch {
        return false; // ended during the scan
      }
    });
}

await describeNeeding(bubblewrap, "an engine that is killed in the midst of a run", () => {
  it("fails rollouts by the sandbox, which are tried again: nothing is lost, no agent is blamed", async () => {
    const { run } = await simBook();
    const sandbox = await openSandbox({ engine: "bubblewrap", workers: 2 });
    let killed = 0;
    const log: string[] = [];
    const timer = setInterval(() => {
      if (killed >= 4) return;
      for (const pid of builders().slice(0, 1)) {
        process.kill(pid, "SIGKILL");
        killed++;
      }
    }, 15);
    try {
      const results = sealedOnly(
        await run({
          ...{ world, grader: sandboxGrader(sandbox), samples: 2 },
          attempts: { sandbox: 12 },
          log: (line) => log.push(line),
        }),
      );
      expect(results).toHaveLength(12);
      expect(new Set(results.map(({ ending }) => ending.kind))).toEqual(new Set(["terminal"]));
      expect(killed).toBeGreaterThan(0);
      expect(log.filter((line) => line.includes("failed by sandbox")).length).toBeGreaterThan(0);
    } finally {
      clearInterval(timer);
      await sandbox.close();
    }
  });
});
