import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildProgram } from "../../src/cli/program.ts";
import { writeTasks } from "../../src/collect/sim/prove/task-files.ts";
import { lines } from "../support/cli.ts";
import { type CommandShell, startCommandShell } from "../support/command-shell.ts";
import { commandsOf, helpOf } from "../support/command-tree.ts";
import { fillDemoBook } from "../support/demo-book.ts";
import { RECORDED_CSV, RECORDED_YAML } from "../support/recorded-answers.ts";
import { routingWorld } from "../support/routing-world.ts";
import { runScript } from "../support/run-script.ts";
import { handTasks } from "../support/sim-tasks.ts";

const main = resolve("dist/cli/main.js");

const examplesIn = (help: string): string[] =>
  help
    .slice(help.search(/\nExamples?:\n/))
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line.startsWith("rollbook "));

describe("the examples of the help texts", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-examples-"));
  const env = { PATH: process.env.PATH, HOME: folder };
  let shell: CommandShell;
  const bash = (script: string, rollbook = shell.rollbook()) =>
    runScript(`set -euo pipefail\n${rollbook}\n${script}`, { cwd: folder, env });

  beforeAll(async () => {
    shell = await startCommandShell();
    await fillDemoBook(join(folder, ".rollbook"));
    const ready = await bash("rollbook artifact show r-0001 --json > rollouts.jsonl");
    expect(ready.err).not.toContain("error");
    writeFileSync(join(folder, "log.vw"), "1:0:0.5 | a\n2:1:0.5 | b\n");
    writeFileSync(join(folder, "all.csv"), "question,small,large\nHow far?,0,1\nHow long?,1,1\n");
    writeFileSync(
      join(folder, "log.csv"),
      "question,arm,score,p\nHow far?,small,1,0.5\nHow long?,large,0,0.5\n",
    );
    const calls = ["small", "large"].map((model) => ({
      request: { messages: [{ role: "user", content: `Ask ${model}.` }] },
      ...{ response: { model }, score: 1 },
    }));
    writeFileSync(join(folder, "calls.jsonl"), lines(...calls));
    cpSync("examples/own-family", join(folder, "node_modules/rollbook/examples/own-family"), {
      recursive: true,
    });
    writeFileSync(join(folder, "tasks.jsonl"), '{"prompt": "2 + 2", "metadata": {"a": 2}}\n{"a": 3}\n');
    const upstreams = 'upstreams: { local: { baseUrl: "http://127.0.0.1:9/v1" } }';
    writeFileSync(
      join(folder, "gateway.yaml"),
      `listen: { port: 0 }\n${upstreams}\nmodels: { m: { upstream: local }, n: { upstream: local } }\nrouter: { table: { default: [m, n] } }\n`,
    );
    writeFileSync(join(folder, "request.json"), '{"messages": [{"role": "user", "content": "How far?"}]}\n');
    writeTasks(join(folder, "tasks"), handTasks(3));
    writeFileSync(
      join(folder, "table.yaml"),
      "schema: rollbook.static-table.v1\ndefault: [sim-small, sim-large]\n",
    );
    writeFileSync(join(folder, "router.yaml"), "router: { candidates: { small: {}, large: {} } }\n");
    writeFileSync(
      join(folder, "loop.yaml"),
      "run: example\nbook: loop-book\nworld: { kind: simulator, tasks: tasks }\nwindows: 1\nrollouts: 12\nsamples: 4\nlearner: { kind: ucb }\nsplit: { unit: decision, shares: [0.5, 0, 0.5] }\n",
    );
    writeFileSync(join(folder, "recorded.yaml"), RECORDED_YAML);
    writeFileSync(join(folder, "answers.csv"), RECORDED_CSV);
    const decisions = routingWorld(3000, 3);
    writeFileSync(join(folder, "decisions.jsonl"), lines(...decisions));
    const shadow = decisions.map((row) => `${(row as { decision_id: string }).decision_id},0.5\n`);
    writeFileSync(join(folder, "shadow.csv"), `decision_id,probability\n${shadow.join("")}`);
    const learned = await bash(
      "rollbook train linucb --data decisions.jsonl --out policies/learned --id learned --alpha 0.1",
    );
    expect(learned.err).not.toContain("error");
    writeFileSync(join(folder, "agent.mjs"), "export default ({ a }) => a;\n");
    const launch = "rollbook launch --book runs --tasks tasks.jsonl --agent agent.mjs";
    const launched = await bash(`${launch} --exp before && ${launch} --exp after`);
    expect(launched.code, launched.err).toBe(0);
  }, 180_000);
  afterAll(async () => {
    await shell.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("all run as they stand, in a folder with the book of the tour", async () => {
    const found = new Set(commandsOf(await buildProgram()).flatMap((command) => examplesIn(helpOf(command))));
    // `bench compare` runs after the examples that write results. `artifact erase` runs last, because examples after it
    // would miss the erased records.
    const late = ["rollbook bench compare", "rollbook artifact erase"];
    const rank = (line: string) => late.findIndex((start) => line.startsWith(start));
    // Other tests cover these examples: the demo, queues and buckets of other servers, slime, weights of other
    // trainers, rewards.
    const examples = [...found]
      .filter((line) => !/^rollbook (demo|slime|train weights|reward serve)|\b(nats|s3):\/\//.test(line))
      .sort((a, b) => rank(a) - rank(b));
    expect(examples.length).toBeGreaterThan(20);
    // Servers run until they get a signal, and then must exit. `timeout` reports this as 124.
    const serves = (line: string) => /^rollbook (gateway|sim replay|view(?!.*--out))/.test(line);
    const script = (line: string) => {
      if (line.startsWith("rollbook bench compare"))
        return `cp result.json before.json; cp result.json after.json; ${line}`;
      return serves(line) ? line.replace("rollbook", `timeout -s INT 3 node ${main}`) : line;
    };
    const failed: string[] = [];
    for (const line of examples) {
      const { code, err } = await bash(script(line));
      if (code !== (serves(line) ? 124 : 0)) failed.push(`${line}: ${err}`);
    }
    expect(failed).toEqual([]);
  }, 400_000);

  it("survive a reader that goes away", async () => {
    const program = `rollbook() { node ${main} "$@"; }`;
    expect((await bash("rollbook artifact ls | head -1", program)).code).toBe(0);
    expect((await bash("rollbook schema rollout | true", program)).err).toBe("");
  });
});
