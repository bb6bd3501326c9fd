import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { writeTasks } from "../../src/collect/sim/prove/task-files.ts";
import { routingContext } from "../../src/collect/sim/tasks/prompt.ts";
import { DEFAULT_MODELS } from "../../src/collect/sim/world/models.ts";
import { candidateOf } from "../../src/collect/sim/world/world.ts";
import type { RoutingRow } from "../../src/convert/routing-jsonl.ts";
import { Cli, lines } from "../support/cli.ts";
import { routingWorld } from "../support/routing-world.ts";
import { handTasks } from "../support/sim-tasks.ts";

function withTasks(count: number): Cli {
  const cli = new Cli();
  writeTasks(join(cli.folder, "tasks"), handTasks(count));
  return cli;
}

describe("rollbook sim run", () => {
  it("runs an agent on every task, sums up by family, and does nothing the second time", async () => {
    const cli = withTasks(6);
    const command = `sim run --tasks ${cli.folder}/tasks --model sim-large --engine quickjs --workers 2`;
    const [summary] = (await cli.json(command)).slice(-1);
    expect(summary).toMatchObject({ kind: "summary", total: 6, done: 6, earlier: 0 });
    expect(summary.families.map((each: { family: string }) => each.family)).toEqual([
      ...["hand-line", "hand-parabola", "hand-step", "all"],
    ]);
    const all = summary.families.at(-1);
    expect(all.rollouts).toBe(6);
    expect(all.interval[0]).toBeLessThan(all.passRate);
    const [again] = (await cli.json(command)).slice(-1);
    expect(again).toMatchObject({ done: 6, earlier: 6 });
    expect(again.families).toEqual(summary.families);
  });

  it("takes an agent file and a router's table, and exits 1 below --min-pass", async () => {
    const cli = withTasks(3);
    cli.file("agent.mjs", "export default () => ({ finalState: { files: {} } });\n");
    const common = `--tasks ${cli.folder}/tasks --engine quickjs`;
    const idle = await cli.run(`sim run ${common} --agent ${cli.folder}/agent.mjs --min-pass 0.5`);
    expect([idle.code, idle.err]).toEqual([1, expect.stringContaining("less than --min-pass 0.5")]);
    cli.file("table.yaml", "schema: rollbook.static-table.v1\ndefault: sim-coder\n");
    const routed = await cli.json(`sim run ${common} --router ${cli.folder}/table.yaml`);
    expect(routed.filter(({ kind }) => kind === "rollout")).toHaveLength(3);
    cli.file("typo.yaml", "schema: rollbook.static-table.v1\ndefault: sim-codr\n");
    const typo = await cli.run(`sim run ${common} --router ${cli.folder}/typo.yaml`);
    expect([typo.code, typo.err]).toEqual([1, expect.stringContaining("sim-codr")]);
    expect((await cli.run(`sim run ${common} --router a --model b`)).code).toBe(2);
  });

  it("runs a learned policy, and says what it is exactly worth", async () => {
    const cli = withTasks(12);
    const tasks = `--tasks ${cli.folder}/tasks --fast`;
    await cli.ok(`sim collect ${tasks} --samples 8`);
    const [data, checkpoint] = [join(cli.folder, "r.jsonl"), join(cli.folder, "policy")];
    await cli.ok(`data export --out ${data}`);
    await cli.ok(`train ucb --data ${data} --split all --out ${checkpoint} --id router-ucb`);
    const [{ values }] = (await cli.json(`sim run ${tasks} --checkpoint ${checkpoint}`)).slice(-1);
    const single = (await cli.json(`sim run ${tasks} --model sim-thinker`)).at(-1).values.expected;
    expect(values.expected).toBeGreaterThan(single);
    expect(values.expected).toBeLessThanOrEqual(values.best);
    expect((await cli.run(`sim run ${tasks} --checkpoint ${checkpoint} --model sim-small`)).code).toBe(2);
    const log = cli.file("other.jsonl", lines(...routingWorld(60, 3)));
    const other = join(cli.folder, "other");
    await cli.ok(`train ucb --data ${log} --split all --out ${other} --id other`);
    expect((await cli.run(`sim run ${tasks} --checkpoint ${other}`)).err).toContain(
      "was trained on decisions among cheap, strong, and knows none of the simulated models (sim-large,",
    );
  });

  it("names the engine that cannot run the tasks before it begins", async () => {
    const cli = new Cli();
    const [{ task, proof }] = handTasks(1) as [ReturnType<typeof handTasks>[number]];
    const check = { kind: "python" as const, entry: "check.py" };
    const { taskDigest } = await import("../../src/collect/sim/prove/generate.ts");
    const visible = { ...task.visible, check };
    const digest = taskDigest({ visible, oracle: task.oracle });
    writeTasks(join(cli.folder, "tasks"), [
      { task: { ...task, visible, digest }, proof: { ...proof, task: digest } },
    ]);
    const { code, err } = await cli.run(`sim run --tasks ${cli.folder}/tasks --engine quickjs`);
    expect([code, err]).toEqual([1, expect.stringContaining("the quickjs engine runs javascript only")]);
  });
});

describe("an agent that blames others", () => {
  it.each([
    ['{ ending: { kind: "failed", owner: "task", message: "broken" } }'],
    ['{ error: { owner: "infrastructure", message: "broken" } }'],
    ['{ ending: { kind: "cancelled" } }'],
  ])("fails by itself on proved tasks, with %s", async (returned) => {
    const cli = withTasks(4);
    cli.file("agent.mjs", `export default () => (${returned});\n`);
    const { code, out, err } = await cli.run(
      `sim run --tasks ${cli.folder}/tasks --engine quickjs --agent ${cli.folder}/agent.mjs --min-pass 0.1 --json`,
    );
    const summary = JSON.parse(out.trimEnd().split("\n").at(-1)!);
    expect(summary.failed).toEqual({ agent: 4 });
    expect(summary.families.at(-1)).toMatchObject({ rollouts: 4, passed: 0 });
    expect([code, err]).toEqual([1, expect.stringContaining("less than --min-pass 0.1")]);
  });
});

it("an agent that always fails ends the command with its reasons and the next step, as in a launch", async () => {
  const cli = withTasks(4);
  cli.file("agent.mjs", 'export default () => { throw new Error("no such tool"); };\n');
  const { code, out, err } = await cli.run(
    `sim run --tasks ${cli.folder}/tasks --engine quickjs --agent ${cli.folder}/agent.mjs`,
  );
  expect(out).toMatch(
    /failed 4 \(agent 4\)\n\nFAILURES {2}OWNER {2}FIRST MESSAGE\n +4 {2}agent {2}.*no such tool/,
  );
  expect(code).toBe(1);
  expect(err).toMatch(
    /all 4 rollouts failed.* Correct the cause, then give the command again with another --exp/,
  );
});

describe("what was collected", () => {
  it("is cut into batches for the router that decided and for what learned from it, and verifies", async () => {
    const cli = withTasks(3);
    await cli.ok(`sim collect --tasks ${cli.folder}/tasks --samples 4 --fast`);
    const revisions = await cli.json("artifact ls --revisions --family sim.router");
    expect(revisions).toEqual([
      expect.objectContaining({ family: "sim.router", id: expect.stringMatching(/^router-/) }),
    ]);
    const { id } = revisions[0];
    const [batch] = await cli.json(`batch assemble --target ${id} --level step`);
    expect(JSON.stringify(batch)).toContain(id);
    const learn = `train ucb --split all --policy sim.router --parent ${id}`;
    await cli.ok(`${learn} --out ${cli.folder}/policy --id router-ucb`);
    const trained = JSON.parse(readFileSync(join(cli.folder, "policy", "revision.json"), "utf8"));
    expect(trained.parent).toEqual({ id, digest: revisions[0].digest });
    await cli.ok("batch assemble --target router-ucb --level step");
    const { code, out } = await cli.run("verify");
    expect([code, out]).toEqual([0, expect.not.stringContaining("without a record")]);
    expect((await cli.run("artifact ls --revisions --task x")).code).toBe(2);
  });
});

describe("rollbook sim run --max-turns", () => {
  it("states no exact value where models may be cut short", async () => {
    const cli = withTasks(2);
    const common = `sim run --tasks ${cli.folder}/tasks --model sim-large --fast`;
    const valuesOf = async (flags: string) => (await cli.json(`${common} ${flags}`)).at(-1)!.values;
    expect(await valuesOf("--max-turns 5")).toMatchObject({ expected: expect.any(Number) });
    expect(await valuesOf("--max-turns 4")).toBeUndefined();
    expect((await cli.run(`${common} --every-turn`)).code).toBe(2);
    expect((await cli.run(`${common} --floor 0.5`)).code).toBe(2);
  });
});

describe("rollbook sim collect", () => {
  it("sums up a single rollout without an interval, and refuses what a policy would ignore", async () => {
    const cli = withTasks(1);
    const common = `sim collect --tasks ${cli.folder}/tasks --fast`;
    const { out } = await cli.run(common);
    expect(out).toMatch(/observed: [\d.]+ over 1 rollout, 1 sealed/);
    expect((await cli.json(common)).at(-1)!.observed).toMatchObject({ count: 1, interval: null });
    const idle = await cli.run(`${common} --policy uniform --epsilon 0.3`);
    expect([idle.code, idle.err]).toEqual([
      2,
      expect.stringContaining("--epsilon has no effect with --policy"),
    ]);
    expect((await cli.run(`${common} --policy softmax --table t.yaml`)).code).toBe(2);
    expect((await cli.run("sim collect --recorded r.yaml --models m.yaml")).code).toBe(2);
  });

  it.each(["uniform", "softmax"])(
    "%s: logs choices, probabilities and rewards, and an export has nothing of family or difficulty",
    async (policy) => {
      const cli = withTasks(6);
      const [summary] = (
        await cli.json(`sim collect --tasks ${cli.folder}/tasks --policy ${policy} --samples 5 --fast`)
      ).slice(-1);
      const contexts = handTasks(6).map(({ task }) => routingContext(task.visible));
      const { values, observed } = summary;
      expect(summary.done).toBe(30);
      expect(values.behaviour).toBeLessThanOrEqual(values.best);
      expect(observed.count).toBe(30);
      // The bound is four and a half standard errors: about one run in a hundred thousand exceeds it.
      const half = observed.interval[1] - observed.mean;
      expect(summary.z).toBeCloseTo((observed.mean - values.behaviour) / (half / 1.96), 2);
      expect(Math.abs(observed.mean - values.behaviour)).toBeLessThan(2.3 * half + 0.02);
      const out = join(cli.folder, "routing.jsonl");
      await cli.ok(`data export --out ${out}`);
      const text = readFileSync(out, "utf8");
      const rows = text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as RoutingRow);
      expect(rows).toHaveLength(30);
      expect(text).not.toMatch(/hand-line|hand-parabola|hand-step|difficulty"|"family/);
      for (const { reward, propensity, state, data_source: source } of rows) {
        expect([typeof reward, source]).toEqual(["number", "synthetic"]);
        expect(propensity).toBeGreaterThan(0);
        // A policy learns from the same context that the router saw. The world's values are computed for that context.
        expect(contexts).toContainEqual({ prompt: state.prompt, fields: state.fields });
        expect(state.candidates.map(({ id, features }) => ({ id, features }))).toEqual(
          DEFAULT_MODELS.map(candidateOf).map(({ id, features }) => ({ id, features })),
        );
      }
      const mean = rows.reduce((sum, { reward }) => sum + reward!, 0) / rows.length;
      expect(mean).toBeCloseTo(observed.mean, 9);
    },
  );
});
