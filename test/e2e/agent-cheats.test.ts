/** Agents that look for the answers instead of working: on the disk, in the book, and in other processes. */
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it, vi } from "vitest";
import { MAIN } from "../../bench/support/build.ts";
import { findBubblewrap } from "../../src/collect/rollout/agent/pool/confine.ts";
import { writeTasks } from "../../src/collect/sim/prove/task-files.ts";
import { Cli } from "../support/cli.ts";
import { handTasks } from "../support/sim-tasks.ts";

const TASKS = 3;

/** Submits the reference solution of its task if it finds one, by any path. */
const cheat = (tasks: string) => `
import * as fs from "node:fs";
import { execSync } from "node:child_process";
const folder = ${JSON.stringify(tasks)};
const pids = () => fs.readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name));
const ways = [
  () => fs.readFileSync(folder + "/solutions.jsonl", "utf8"),
  () => execSync("cat " + folder + "/solutions.jsonl", { stdio: ["ignore", "pipe", "ignore"] }).toString(),
  ...pids().map((pid) => () => fs.readFileSync("/proc/" + pid + "/root" + folder + "/solutions.jsonl", "utf8")),
  ...pids().map((pid) => () => fs.readFileSync("/proc/" + pid + "/cwd/solutions.jsonl", "utf8")),
  () => execSync("find / -xdev -name solutions.jsonl -path '*tasks*' 2>/dev/null | xargs cat").toString(),
];
export default (payload) => {
  for (const way of ways) {
    let found = "";
    try { found = way(); } catch {}
    for (const line of found.split("\\n")) {
      if (!line.startsWith("{")) continue;
      const { id, solutions } = JSON.parse(line);
      if (payload.statement.startsWith("Task " + id.slice(5) + ":")) return { finalState: { files: solutions.reference } };
    }
  }
  return { finalState: { files: {} } };
};
`;

const pythonCheat = (tasks: string) => `
import json, sys
payload = json.load(sys.stdin)["payload"]
files = {}
try:
    for line in open(${JSON.stringify(`${tasks}/solutions.jsonl`)}):
        row = json.loads(line)
        if payload["statement"].startswith("Task " + row["id"][5:] + ":"): files = row["solutions"]["reference"]
except OSError: pass
print(json.dumps({"final_state": {"files": files}}))
`;

async function passRate(agent: "cheat.mjs" | "cheat.py", isolation: string): Promise<number> {
  const cli = new Cli();
  const tasks = join(cli.folder, "tasks");
  writeTasks(tasks, handTasks(TASKS));
  cli.file(agent, agent === "cheat.py" ? pythonCheat(tasks) : cheat(tasks));
  const words = `sim run --tasks ${tasks} --engine quickjs --agent ${cli.folder}/${agent} --isolation ${isolation}`;
  const [summary] = (await cli.json(words)).slice(-1);
  return summary.families.at(-1).passRate;
}

describe.runIf(findBubblewrap() !== undefined)("an agent that looks for solutions.jsonl", () => {
  it.each(["cheat.mjs", "cheat.py"] as const)(
    "as %s earns nothing where bubblewrap works",
    async (agent) => {
      expect(await passRate(agent, "auto")).toBe(0);
      // The same agent without the boundary passes, so the cheat itself works.
      expect(await passRate(agent, "process")).toBe(1);
    },
    60_000,
  );
});

describe("SIGTERM", () => {
  it.each([
    ["spins", "export default () => { for (;;) {} };"],
    [
      "ignores everything",
      "process.on('SIGTERM', () => {}); export default () => new Promise(() => setInterval(() => {}, 9));",
    ],
    [
      "has a reward that spins",
      `export default { rollbook: "rollout-definition.v1", run: () => 1,
  scorer: { name: "s", digest: "sha256:${"b".repeat(64)}", score: () => { for (;;) {} } } };`,
    ],
  ])(
    "ends a launch whose agent %s, and leaves no process",
    async (_, source) => {
      const cli = new Cli();
      const agent = cli.file("stuck.mjs", source);
      const tasks = cli.file("tasks.jsonl", '{"a": 1}\n');
      const words = ["launch", "--book", cli.book, "--tasks", tasks, "--agent", agent];
      const child = spawn(process.execPath, [MAIN, ...words], {
        env: { ...process.env, ROLLBOOK_HOME: cli.home },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const said = text(child.stderr);
      const exited = new Promise<number | null>((resolve) => child.on("exit", resolve));
      // Two processes are the launcher and an agent process. The agent's rollout starts soon after.
      await vi.waitFor(() => expect(processesWith(agent).length).toBeGreaterThan(1), 20_000);
      await vi.waitFor(() => expect(existsSync(join(cli.book, "queue.db"))).toBe(true), 20_000);
      await new Promise((resolve) => setTimeout(resolve, 700));
      const began = performance.now();
      child.kill("SIGTERM");
      expect(await exited).toBe(1);
      expect(performance.now() - began).toBeLessThan(10_000);
      expect(await said).toContain("interrupted");
      await vi.waitFor(() => expect(processesWith(agent)).toEqual([]), 5_000);
    },
    60_000,
  );
});

/** Command lines of running processes that name this file. */
function processesWith(path: string): string[] {
  const { stdout } = spawnSync("pgrep", ["-fa", path], { encoding: "utf8" });
  return stdout.split("\n").filter((line) => line !== "");
}
