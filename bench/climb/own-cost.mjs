/** The cost of Rollbook itself per rollout of the climb: the loop of run.mjs with a model that answers at once, builds
 *  in turns. node own-cost.mjs --build NAME=DIST... [--rollouts 2000] [--windows 3] [--rounds 3] [--profile FOLDER].
 *  DIST has one file per module (pack.sh makes such a build). Out: JSON Lines, a line for each run, then a line for
 *  each build. Units: ms per rollout by stage: processor time (all threads, and the main thread) and elapsed time. Each
 *  figure is the median of the windows after the first, with the least and the most of the rounds. */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = dirname(fileURLToPath(import.meta.url));
const standIn = join(here, "..", "..", "test", "support", "stand-in-model.mjs");
const number = (value) => ({ type: "string", default: String(value) });
const { values: options } = parseArgs({
  options: {
    build: { type: "string", multiple: true, default: [`this=${join(here, "..", "..", "dist")}`] },
    ...{ rollouts: number(2000), windows: number(3), rounds: number(3), workers: number(512) },
    profile: { type: "string" },
  },
});
const builds = options.build.map((each) => each.split("=", 2));
const [rollouts, windows, rounds] = [options.rollouts, options.windows, options.rounds].map(Number);
const runs = new Map(builds.map(([name]) => [name, []]));
for (let round = 0; round < rounds; round++)
  for (const [name, dist] of round % 2 === 0 ? builds : builds.toReversed()) {
    const run = await measure(name, dist);
    runs.get(name).push(run);
    say({ build: name, round, ...run });
  }
for (const [name, list] of runs)
  say({
    ...{ build: name, rounds, rollouts, windows },
    cpuMs: spread(list.map(({ cpuMs }) => cpuMs)),
    mainMs: spread(list.map(({ mainMs }) => mainMs)),
    wallMs: spread(list.map(({ wallMs }) => wallMs)),
    outsideMs: spread(list.map(({ outsideMs }) => outsideMs)),
    stages: Object.fromEntries(
      Object.keys(list[0].stages).map((stage) => [stage, spread(list.map(({ stages }) => stages[stage]))]),
    ),
    catalogBytes: spread(list.map(({ catalogBytes }) => catalogBytes)),
  });

/** One run of the loop in its own process. All times are ms per rollout. `outsideMs`: from the last rollout to the end
 *  of its stage. In that time the gateway closes and the catalog catches up. */
async function measure(name, dist) {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-own-cost-"));
  try {
    writeWorld(folder);
    const profiling =
      options.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${join(options.profile, name)}`];
    const args = [...profiling, join(here, "stage-times.mjs"), join(folder, "loop.yaml")];
    const lines = await output(args, { ...process.env, ROLLBOOK_DIST: dist });
    const seconds = lines.flatMap(({ log }) => (/rollouts in ([\d.]+) s/.exec(log ?? "") ?? []).slice(1));
    const byWindow = Array.from({ length: windows }, (_, i) => {
      const stages = lines.filter((each) => each.window === i + 1);
      const sum = (what, states) =>
        round3(
          stages
            .filter(({ state }) => states === undefined || states.includes(state))
            .reduce((total, each) => total + each[what], 0) / rollouts,
        );
      const collectMs = sum("ms", ["sealed"]) * rollouts;
      return {
        ...{ cpuMs: sum("cpuMs"), mainMs: sum("mainMs"), wallMs: sum("ms") },
        outsideMs: round3((collectMs - 1000 * Number(seconds[i])) / rollouts),
        stages: {
          collectCpu: sum("cpuMs", ["sealed"]),
          batchCpu: sum("cpuMs", ["scored"]),
          trainCpu: sum("cpuMs", ["trained"]),
          collectMain: sum("mainMs", ["sealed"]),
          batchMain: sum("mainMs", ["scored"]),
          collect: sum("ms", ["sealed"]),
          batch: sum("ms", ["scored"]),
        },
      };
    });
    const steady = windows === 1 ? byWindow : byWindow.slice(1);
    const middle = (of) => median(steady.map(of));
    return {
      ...{ cpuMs: middle((each) => each.cpuMs), mainMs: middle((each) => each.mainMs) },
      wallMs: middle((each) => each.wallMs),
      outsideMs: middle((each) => each.outsideMs),
      stages: Object.fromEntries(
        Object.keys(steady[0].stages).map((stage) => [stage, middle(({ stages }) => stages[stage])]),
      ),
      catalogBytes: statSync(join(folder, "book", "catalog.db")).size,
      windows: byWindow.map(({ cpuMs, mainMs, wallMs, outsideMs }) => [cpuMs, mainMs, wallMs, outsideMs]),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function writeWorld(folder) {
  const model = join(folder, "model");
  mkdirSync(model);
  const header = JSON.stringify({ w: { dtype: "F32", shape: [4], data_offsets: [0, 16] } }).padEnd(72);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  writeFileSync(
    join(model, "model.safetensors"),
    Buffer.concat([length, Buffer.from(header), Buffer.alloc(16)]),
  );
  writeFileSync(join(model, "config.json"), "{}");
  writeFileSync(join(model, "characters.json"), '{"symbols":"0123456789+="}');
  const rows = Array.from({ length: 8000 }, (_, i) => ({
    ...{ prompt: `${i}+0=`, label: `${i}0`, metadata: { question: `${i}+0=` } },
  }));
  writeFileSync(join(folder, "tasks.jsonl"), rows.map((row) => JSON.stringify(row)).join("\n"));
  const world = {
    ...{ kind: "tokens", tasks: "tasks.jsonl", model: "model", family: "adder" },
    ...{ python: standIn, device: "cpu" },
  };
  const loop = {
    ...{ run: "climb", book: "book", world, windows, rollouts, samples: 8 },
    ...{ workers: Number(options.workers), learner: { kind: "grpo" } },
  };
  writeFileSync(join(folder, "loop.yaml"), JSON.stringify(loop)); // JSON is YAML
}

function output(args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], env });
    let out = "";
    child.stdout.on("data", (chunk) => {
      out += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) =>
      code === 0
        ? resolve(
            out
              .trim()
              .split("\n")
              .map((line) => JSON.parse(line)),
          )
        : reject(new Error(`${args.join(" ")} ended with ${code}: ${out.slice(-2000)}`)),
    );
  });
}

function spread(list) {
  return { median: round3(median(list)), least: Math.min(...list), most: Math.max(...list) };
}

function median(list) {
  const sorted = list.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function round3(value) {
  return Math.round(value * 1000) / 1000;
}

function say(facts) {
  process.stdout.write(`${JSON.stringify(facts)}\n`);
}
