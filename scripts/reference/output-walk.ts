/** Runs commands with `--json` in this process, on a small book in a new folder. Out: the parsed output of each
 *  command. Rollouts come from the examples; rows come from a seed. Starts no process: `demo`, which needs a sandbox,
 *  is shown by a recorded output that `test/e2e/demo.test.ts` compares with a real one. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { digestJson, systemClock } from "../../src/base/index.ts";
import { run } from "../../src/cli/run.ts";
import { writeTasks } from "../../src/collect/sim/prove/task-files.ts";
import type { RoutingRow } from "../../src/convert/routing-jsonl.ts";
import { readTar } from "../../src/keep/pack/index.ts";
import { holdRun } from "../../src/loop/control.ts";
import { DEMO_OUTPUT } from "../../test/support/demo-output.ts";
import { SMALL, writeLoop } from "../../test/support/loop-world.ts";
import { RECORDED_CSV, RECORDED_YAML } from "../../test/support/recorded-answers.ts";
import { rollBack } from "../../test/support/rolled-back.ts";
import { routingWorld } from "../../test/support/routing-world.ts";
import { handTasks } from "../../test/support/sim-tasks.ts";

export interface CommandOutput {
  readonly title: string;
  readonly documents: readonly object[];
}

const EXAMPLES = fileURLToPath(new URL("../../examples/", import.meta.url));
const AGENT =
  'export default ({ a }) => { if (a === 0) throw new Error("no"); return { reward: a, metrics: { a } }; };\n';
const SCORER = `export default {
  rollbook: "rollout-definition.v1",
  run: () => 1,
  scorer: { name: "right", digest: "sha256:${"0".repeat(64)}", score: async () => [] },
};
`;
const SUITE = `suite: tiny
about: four tasks
tasks: { count: 4, seed: 5, families: [word-problems], engine: quickjs }
train: { decisions: 50 }
repetitions: 2
arms: [{ name: ucb, learner: { kind: ucb } }]
`;
/** One rollout at a time, so that the order of lines is fixed; in this process, so that no sandbox is needed. */
const LAUNCH = "launch --tasks @tasks.jsonl --agent @agent.mjs --samples 2 --concurrency 1 --isolation none";

/** Commands that serve until they are interrupted. Here they are interrupted after they have printed their line. */
const SERVERS = /^(gateway|reward serve|sim replay) /;

const KEY = "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
/** Trainers that print the same keys share one table. */
export const TRAIN = "train auto, ridge, logistic, knn, csc, ucb, linucb, thompson, bc, neural-bc, cql, ppo";
const trainer = (kind: string, options = ""): Step => [
  [TRAIN],
  `train ${kind} --data @rows.jsonl --out @${kind} --id ${kind}${options}`,
];

/** A function prepares a state that no command leaves, and returns the documents of a command, if it runs one. */
type Step = readonly [titles: readonly string[], words: string | ((folder: string) => Promise<Documents>)];
type Documents = readonly { readonly kind?: string; readonly digest?: string }[];

const RUN_STATUS = "run status --config @loop.yaml --book @loop-book";

/** Titles on the page and command words; `@` is the folder, `BATCH` the assembled batch. A title `launch: KIND` takes
 *  the lines of that kind, and steps with the same title share a table. Steps without a title prepare later steps. */
const STEPS: readonly Step[] = [
  [["init"], "init"],
  [["keys new"], "keys new"],
  [["keys trust"], `keys trust ${KEY} worker-1`],
  [["keys show"], "keys show"],
  [["keys untrust"], `keys untrust ${KEY}`],
  [["artifact import"], `artifact import ${EXAMPLES}rollouts.jsonl`],
  [["launch, sim run: rollout", "launch: summary"], `${LAUNCH} --exp a`],
  [[], `${LAUNCH} --exp b`],
  [["launch compare"], "launch compare a b"],
  [["gateway"], "gateway --config @gateway.yaml --port 0"],
  [["worker"], "worker --queue @book/queue.db --agent @agent.mjs --isolation none --idle 0"],
  [["feedback"], "feedback r-0001 --name solved --value 1"],
  [["artifact ls"], "artifact ls"],
  [["artifact ls --revisions"], "artifact ls --revisions"],
  [["artifact show"], "artifact show r-0001"],
  [["artifact admit"], "artifact admit --validate"],
  [[], "artifact admit r-0002 --target writer-r3 --drift 0/5"],
  [["artifact release"], "artifact release r-0002 --reason rare"],
  [["artifact verify, batch verify, verify NAME"], "artifact verify r-0001"],
  [["batch assemble"], "batch assemble --target writer-r3 --level token"],
  [["batch show"], "batch show"],
  [["batch export"], "batch export BATCH --format jsonl --out @batch.jsonl"],
  [["artifact verify, batch verify, verify NAME"], "batch verify BATCH"],
  [["verify"], "verify"],
  [["artifact verify, batch verify, verify NAME"], "verify r-0001"],
  [["batch assemble"], "batch assemble --target writer-r3 --level token --seed 1"],
  [["batch diff"], "batch diff FIRST BATCH"],
  [["cat"], "cat r-0001"],
  [["head"], "head"],
  [["schema"], "schema"],
  [["view --out"], "view --out @book.html"],
  [["replay write, append"], "replay write @router.zarr --family router"],
  [["replay write, append"], "replay append @router.zarr --family router"],
  [["replay info"], "replay info @router.zarr"],
  [["replay validate"], "replay validate @router.zarr"],
  [["replay compact"], "replay compact @router.zarr @compact.zarr"],
  [["data export"], "data export --out @decisions.jsonl"],
  [["data convert --to"], "data convert --to verifiers --out @traces.jsonl"],
  [["data convert --from"], "data convert --from verifiers @traces.jsonl --out @back.jsonl"],
  [["data check"], "data check --data @rows.jsonl"],
  [["data import --out"], "data import @rows.jsonl --out @imported.jsonl"],
  [["reward analyze"], "reward analyze --data @rows.jsonl"],
  [["reward serve"], "reward serve --agent @scorer.mjs --isolation none --port 0"],
  ...["auto", "ridge", "logistic", "knn", "csc", "ucb", "linucb", "bc"].map((kind) => trainer(kind)),
  trainer("thompson", " --form linear"),
  trainer("neural-bc", " --steps 20 --hidden 8"),
  trainer("cql", " --steps 20 --hidden 8"),
  [[TRAIN], "train ppo --env cart-pole --steps 512 --environments 2 --horizon 64 --out @ppo --id ppo"],
  [["train weights"], "train weights @models.yaml --family weights --id weights-1"],
  [["evaluate"], "evaluate --data @rows.jsonl --checkpoint @ucb"],
  [[], "train ucb --data @chains.jsonl --out @chains --id chains"],
  [["evaluate"], "evaluate --data @chains.jsonl --checkpoint @chains"],
  [["gate"], "gate --data @rows.jsonl --checkpoint @ucb --epsilon-quality 0.5 --epsilon-cost 2"],
  [["route ask"], "route ask --checkpoint @ucb hello"],
  [["route explain"], "route explain r-0001.0"],
  [[], rolledBack],
  [["route rollbacks"], "route rollbacks"],
  [["sim generate"], "sim generate --count 2 --seed 7 --no-prove --out @drawn"],
  [
    ["launch, sim run: rollout", "sim run: summary"],
    "sim run --tasks @few --model stepper --models @models.yaml --fast",
  ],
  [["sim collect"], "sim collect --tasks @few --models @models.yaml --fast --samples 10"],
  [["sim replay"], "sim replay --recorded @recorded.yaml --port 0"],
  [["run start, resume, status"], "run start --config @loop.yaml --book @loop-book"],
  [["run start, resume, status"], "run resume --config @loop.yaml --book @loop-book"],
  [["run start, resume, status"], RUN_STATUS],
  [["run start, resume, status"], statusWhileRunning],
  [["run stop"], "run stop --config @loop.yaml --book @loop-book"],
  [["run report"], "run report --config @loop.yaml --book @loop-book --out @report.html"],
  [["bench ls"], "bench ls"],
  [["bench run"], "bench run --suite @suite.yaml"],
  [
    ["bench ablate"],
    "bench ablate --suite @suite.yaml --decisions 50 --floors 0 --cost-weights 1 --latency-weights 1",
  ],
  [["bench compare"], "bench compare @pack/results.json @pack/results.json"],
  [["pack seal, tar"], "pack seal --config @loop.yaml --book @loop-book --out @loop-pack"],
  [["pack seal, tar"], "pack tar @loop-pack --out @loop.tar"],
  [["pack verify"], "pack verify @pack"],
  [["pack rerun"], "pack rerun @pack"],
  [["slime train --dry-run"], "slime train --config @slime.yaml --dry-run"],
  [["slime train --prepare"], "slime train --config @slime.yaml --prepare"],
  [["doctor"], "doctor"],
  [["gc"], "gc --dry-run"],
  [["artifact erase"], "artifact erase r-0020 --reason test --with-batches --yes"],
  [["catalog rebuild"], "catalog rebuild"],
  [["completion"], "completion bash"],
];

export async function commandOutputs(): Promise<CommandOutput[]> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-outputs-"));
  try {
    writeInputs(folder);
    const outputs = new Map<string, object[]>([["demo", [DEMO_OUTPUT]]]);
    const batches: string[] = [];
    for (const [titles, words] of STEPS) {
      const [first = "", last = ""] = [batches[0], batches.at(-1)];
      const documents =
        typeof words === "string"
          ? await documentsOf(folder, words.replace("FIRST", first).replace("BATCH", last))
          : await words(folder);
      if (titles[0] === "batch assemble") batches.push(documents[0]!.digest!);
      for (const title of titles) {
        const kind = title.split(": ")[1];
        const own = documents.filter((each) => kind === undefined || each.kind === kind);
        outputs.set(title, [...(outputs.get(title) ?? []), ...own]);
      }
    }
    return [...outputs].map(([title, documents]) => ({ title, documents }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The status while a process collects. */
function statusWhileRunning(folder: string): Promise<Documents> {
  return holdRun({ root: join(folder, "loop-book"), run: SMALL.run, options: "" }, async (_, tell) => {
    tell({ window: 1, state: "collecting", done: 1, total: 4 });
    return documentsOf(folder, RUN_STATUS);
  });
}

/** A rollback needs a gateway and many outcomes. */
async function rolledBack(folder: string): Promise<Documents> {
  await rollBack(join(folder, "book"), digestJson("test.router", "new"), {
    ...{ policy: "ucb", feedback: "solved", verdict: digestJson("test.verdict", "new") },
  });
  return [];
}

/** Two decisions per rollout. */
function inPairs(row: RoutingRow, i: number): RoutingRow {
  const first = i - (i % 2);
  const shared = { session_id: `s-${first}`, task_id: `t-${first}` };
  return i === first ? { ...row, ...shared, terminal: false } : { ...row, ...shared, chain_id: `d-${first}` };
}

function writeInputs(folder: string): void {
  const lines = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  const tasks = [0, 1, 2].map((a) => ({ prompt: `task ${a}`, metadata: { a } }));
  writeFileSync(join(folder, "agent.mjs"), AGENT);
  writeFileSync(join(folder, "tasks.jsonl"), lines(tasks));
  writeFileSync(join(folder, "rows.jsonl"), lines(routingWorld(300, 3)));
  writeFileSync(join(folder, "chains.jsonl"), lines(routingWorld(2000, 3).map(inPairs)));
  writeFileSync(join(folder, "scorer.mjs"), SCORER);
  writeFileSync(join(folder, "suite.yaml"), SUITE);
  writeFileSync(join(folder, "answers.csv"), RECORDED_CSV);
  writeFileSync(join(folder, "recorded.yaml"), RECORDED_YAML);
  writeFileSync(join(folder, "gateway.yaml"), 'upstreams: { local: { baseUrl: "http://127.0.0.1:9" } }\n');
  writeFileSync(
    join(folder, "slime.yaml"),
    "expId: sums\nagent: agent.mjs\ndataPath: tasks.jsonl\nmodelDir: /models/m\nmodelType: qwen2.5-3B\n",
  );
  writeTasks(join(folder, "few"), handTasks(3));
  writeLoop(folder, { ...SMALL, windows: 1, rollouts: 4 });
  readTar(join(EXAMPLES, "example-pack.tar"), join(folder, "pack"));
}

async function documentsOf(folder: string, words: string): Promise<Documents> {
  const streams = { out: "", err: "" };
  const code = await run([...words.replaceAll("@", `${folder}/`).split(" "), "--json"], {
    stdin: (async function* () {})(),
    out: (data) => {
      streams.out += String(data);
      if (SERVERS.test(words)) setImmediate(() => process.emit("SIGINT"));
    },
    err: (text) => {
      streams.err += text;
    },
    ...{ live: false, terminal: false, home: folder, clock: systemClock },
    env: { ROLLBOOK_BOOK: join(folder, "book"), ROLLBOOK_HOME: join(folder, "home") },
  });
  if (code !== 0) throw new Error(`exit ${code} from rollbook ${words}: ${streams.err}`);
  // A list on one line is shown as its elements.
  return streams.out
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => JSON.parse(line));
}
