/** An environment from outside the package: names tasks, limits, tools and reward of `roman@1` by digest, and prints the sealed
 *  record for `rollbook artifact import`. Run: node environment.mjs tasks.jsonl > environment.jsonl */
import { readFileSync } from "node:fs";
import { digestJson } from "rollbook/base";
import { EnvironmentPackage, encodeWire, seal } from "rollbook/contract";
import { sealTask } from "rollbook/rollout";
import { scorer } from "./agent.mjs";

const rows = readFileSync(process.argv[2], "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));
// The same digests as those that the rollouts of `rollbook launch --environment roman@1` name.
const tasks = rows.map((row) => sealTask(row, { environment: "roman@1" }).digest);
const { record } = seal(EnvironmentPackage, {
  key: "roman@1",
  execution: { entrypoint: "agent.mjs", args: [], maxTurns: 1, timeBudgetMs: 60_000 },
  files: tasks.map((digest, i) => ({ path: `task-${i}.json`, digest })),
  tools: [],
  datasets: [{ name: "tasks", digest: digestJson("roman-tasks", tasks) }],
  rubrics: [{ name: scorer.name, digest: scorer.digest }],
  benchmarkProfiles: [],
});
console.log(JSON.stringify(encodeWire(EnvironmentPackage, record)));
