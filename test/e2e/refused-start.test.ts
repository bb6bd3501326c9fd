/** `rollbook run start` and `rollbook gateway` with inputs that are wrong: they name the mistake and leave nothing
 *  behind. */
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { taskDigest } from "../../src/collect/sim/prove/generate.ts";
import { writeTasks } from "../../src/collect/sim/prove/task-files.ts";
import { Cli } from "../support/cli.ts";
import { LOOP, SMALL, writeConfig, writeLoop } from "../support/loop-world.ts";
import { handTasks } from "../support/sim-tasks.ts";

const AGENT = { kind: "agent", agent: "agent.mjs", tasks: "tasks.jsonl", gateway: "gateway.yaml" };
const TOKENS = { kind: "tokens", tasks: "tasks.jsonl", model: "model", family: "adder", python: "python3" };
const TOKEN_LOOP = { run: "climb", book: "book", windows: 1, rollouts: 4, learner: { kind: "grpo" } };
const GENERATE = { kind: "simulator", tasks: "made", models: "models.yaml", generate: { count: 12 } };

/** A folder with all that the configurations name, apart from the mistake. */
function places(): Cli {
  const cli = new Cli({ clock: systemClock });
  writeLoop(cli.folder);
  const files = {
    "agent.mjs": "export default async () => 1;\n",
    "tasks.jsonl": '{"question":"1"}\n{"question":"2"}\n',
    "broken.jsonl": "{\n",
    "gateway.yaml": JSON.stringify({
      upstreams: { up: { baseUrl: "http://127.0.0.1:1" } },
      models: { weak: { upstream: "up" } },
      routes: { auto: ["weak"] },
    }),
    "table.yaml": "schema: rollbook.static-table.v1\ndefault: nobody\n",
    "features.yaml": "schema: nothing\n",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cli.folder, name), text);
  return cli;
}

const listed = (folder: string) => readdirSync(folder, { recursive: true }).sort();

const agentLoop = (world: object, more: object = {}) => ({
  ...{ ...SMALL, rollouts: 2, world: { ...AGENT, ...world }, ...more },
});

const MISTAKES: [string, object, string][] = [
  ["an unknown key", { ...LOOP, widows: 3 }, "unknown key widows"],
  ["a missing agent", agentLoop({ agent: "nowhere.mjs" }), "nowhere.mjs"],
  ["a missing tasks file", agentLoop({ tasks: "nowhere.jsonl" }), "nowhere.jsonl"],
  ["a tasks file that is not JSON", agentLoop({ tasks: "broken.jsonl" }), "broken.jsonl:1"],
  ["a missing gateway file", agentLoop({ gateway: "nowhere.yaml" }), "nowhere.yaml"],
  ["a route that the gateway lacks", agentLoop({ route: "other" }), "has no route other"],
  [
    "a token variable that is not set",
    agentLoop({}, { gateways: ["http://127.0.0.1:1"], gatewayTokenEnv: "ROLLBOOK_TEST_NO_TOKEN" }),
    "ROLLBOOK_TEST_NO_TOKEN is not set",
  ],
  ["a table that is missing", { ...SMALL, table: "nowhere.yaml" }, "nowhere.yaml"],
  ["a table that names another model", { ...SMALL, table: "table.yaml" }, "nobody"],
  ["a wrong feature file", { ...SMALL, learner: { kind: "linucb", features: "features.yaml" } }, "features"],
  ["a missing tasks folder", { ...SMALL, world: { ...LOOP.world, tasks: "nowhere" } }, "nowhere"],
  ["missing models", { ...SMALL, world: { ...LOOP.world, models: "nowhere.yaml" } }, "nowhere.yaml"],
  ["too few tasks", { ...SMALL, rollouts: 40 }, "[too-few-tasks]"],
  ["too few tasks to generate", { ...SMALL, rollouts: 40, world: GENERATE }, "[too-few-tasks]"],
  ["a wrong table, and tasks to generate", { ...SMALL, world: GENERATE, table: "table.yaml" }, "nobody"],
  [
    "a family of tasks that does not exist",
    { ...SMALL, world: { ...GENERATE, generate: { count: 12, families: ["nothing"] } } },
    "nothing",
  ],
  [
    "an engine that does not run the family of tasks to generate",
    {
      ...SMALL,
      world: { ...GENERATE, engine: "quickjs", generate: { count: 12, families: ["sql-query"] } },
    },
    "[family-not-runnable]",
  ],
  [
    "a gate without bounds",
    { ...SMALL, gate: { method: "empirical-bernstein" }, discount: 0.9 },
    "[no-bounds]",
  ],
  [
    "a bound on cost without a range of costs",
    { ...SMALL, gate: { method: "empirical-bernstein", epsilonCost: 0 } },
    "needs gate.costRange",
  ],
  ["a missing model", { ...TOKEN_LOOP, world: TOKENS }, "model"],
];

describe("a refused `rollbook run start`", () => {
  it.each(MISTAKES)("with %s leaves no book, no key and no other file", async (_, config, problem) => {
    const cli = places();
    const path = writeConfig(cli.folder, config);
    const before = listed(cli.folder);
    const { code, err } = await cli.run(`run start --config ${path}`);
    expect([code, err]).toEqual([1, expect.stringContaining(problem)]);
    expect(err).not.toContain("made a new book");
    expect(listed(cli.folder)).toEqual(before);
  });

  it("with an engine that does not run the tasks leaves no book, no key and no other file", async () => {
    const cli = places();
    const inPython = handTasks(12).map(({ task, proof }) => {
      const visible = { ...task.visible, check: { kind: "python", entry: "check.mjs" } as const };
      const digest = taskDigest({ ...task, visible });
      return { task: { ...task, visible, digest }, proof: { ...proof, task: digest } };
    });
    writeTasks(join(cli.folder, "python"), inPython);
    const world = { ...LOOP.world, tasks: "python", fast: false, engine: "quickjs" };
    const path = writeConfig(cli.folder, { ...SMALL, world });
    const before = listed(cli.folder);
    const { code, err } = await cli.run(`run start --config ${path}`);
    expect([code, err]).toEqual([1, expect.stringContaining("[sandbox-unsupported-program]")]);
    expect(listed(cli.folder)).toEqual(before);
  });

  it("and a --follow without a run leave no book and no key", async () => {
    const cli = places();
    const path = writeConfig(cli.folder, SMALL);
    const before = listed(cli.folder);
    const { code, err } = await cli.run(`run start --config ${path} --follow ${join(cli.folder, "tasks")}`);
    expect([code, err]).toEqual([1, expect.stringContaining("[no-run-to-follow]")]);
    expect(listed(cli.folder)).toEqual(before);
  });

  it("leaves an existing book without a folder of the run", async () => {
    const cli = places();
    await cli.ok("init");
    const path = writeConfig(cli.folder, agentLoop({ agent: "nowhere.mjs" }));
    await cli.run(`run start --config ${path}`); // the first look at a book makes its catalog
    const before = listed(cli.folder);
    expect(before).not.toContain("book/loop");
    const { code, err } = await cli.run(`run start --config ${path}`);
    expect([code, err]).toEqual([1, expect.stringContaining("nowhere.mjs")]);
    expect(listed(cli.folder)).toEqual(before);
  });

  it("of a run that has begun says so, also when its tasks are gone", async () => {
    const cli = places();
    const config = { ...SMALL, windows: 1 };
    await cli.ok(`run start --config ${writeConfig(cli.folder, config)}`);
    rmSync(join(cli.folder, "tasks"), { recursive: true });
    const { code, err } = await cli.run(`run start --config ${join(cli.folder, "loop.yaml")}`);
    expect([code, err]).toEqual([1, expect.stringContaining("[run-exists]")]);
  }, 60_000);
});

describe("a refused `rollbook gateway`", () => {
  const GATEWAY = {
    upstreams: { up: { baseUrl: "http://127.0.0.1:1" } },
    models: { weak: { upstream: "up" }, strong: { upstream: "up" } },
  };
  const KEY = { upstreams: { up: { ...GATEWAY.upstreams.up, keyEnv: "ROLLBOOK_TEST_NO_KEY" } } };
  it.each<[string, object, string, string]>([
    ["without a token beyond this host", {}, "--host 0.0.0.0", "without a token"],
    ["without the key of an upstream", KEY, "", "ROLLBOOK_TEST_NO_KEY, which is not set"],
    ["with a table that names another model", { router: { table: "table.yaml" } }, "", "nobody"],
    ["with a target, which a new book cannot have", {}, "--target r-1", "there is no book"],
  ])("%s leaves no book, no key and no other file", async (_, more, words, problem) => {
    const cli = places();
    const table = join(cli.folder, "table.yaml");
    const text = JSON.stringify({ ...GATEWAY, ...more }).replace("table.yaml", table);
    const config = cli.file("gateway.yaml", text);
    const before = listed(cli.folder);
    const { code, err } = await cli.run(`gateway --config ${config} --port 0 ${words}`.trim());
    expect([code, err]).toEqual([1, expect.stringContaining(problem)]);
    expect(err).not.toContain("made a new book");
    expect(listed(cli.folder)).toEqual(before);
  });

  it("on a port in use leaves no book and no key", async () => {
    const cli = places();
    const config = cli.file("gateway.yaml", JSON.stringify(GATEWAY));
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const before = listed(cli.folder);
    const { port } = server.address() as AddressInfo;
    const { code, err } = await cli.run(`gateway --config ${config} --port ${port}`);
    expect([code, err]).toEqual([1, expect.stringContaining("[cannot-listen]")]);
    expect(listed(cli.folder)).toEqual(before);
    server.close();
  });
});
