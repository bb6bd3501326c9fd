/** The climb: token-level reinforcement learning through sealed batches, compared with a plain loop without records.
 *  node run.mjs PHASE... [--option value]. Phases: base, sweep, plain, cost, seeds, control, large, verify. Results are
 *  JSON files in --out; a later call adds to them. In: a build (ROLLBOOK_DIST), a Python with torch. */
import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = dirname(fileURLToPath(import.meta.url));
const dist = process.env.ROLLBOOK_DIST ?? join(here, "..", "..", "dist");
const text = (fallback) => ({ type: "string", default: fallback });
const { values: options, positionals: phases } = parseArgs({
  allowPositionals: true,
  options: {
    resume: { type: "boolean", default: false }, // continue runs that a time limit ended
    ...{
      work: text("/tmp/climb-work"),
      out: text("/tmp/climb-out"),
      python: text("python3"),
      device: text("cuda"),
    },
    ...{ hidden: text("256"), layers: text("6"), limit: text("99"), until: text("0.27"), every: text("10") },
    ...{ "sft-rate": text("5e-4"), "sft-batch": text("256"), "sft-every": text("25"), threads: text("") },
    ...{
      windows: text("60"),
      rollouts: text("2048"),
      samples: text("8"),
      workers: text("512"),
      seeds: text("1,2,3"),
    },
    ...{
      rate: text("1e-4"),
      passes: text("2"),
      minibatches: text("1"),
      "kl-limit": text("0.1"),
      decay: text(""), // FROM,UNTIL,TO: the windows between which the rate falls, and the share that it falls to
      "held-out": text("500"),
    },
    ...{
      "large-hidden": text("576"),
      "large-layers": text("7"),
      "large-windows": text("10"),
      "large-until": text("0.27"),
    },
    ...{
      seconds: text("3600"),
      "cost-windows": text("6"),
      "control-windows": text("10"),
      "max-batch": text("2048"),
      "large-rate": text("1e-4"),
      "sweep-seeds": text("1,2,3"),
      "sweep-steps": text("40"),
    },
  },
});
const seeds = options.seeds.split(",").map(Number);
const [from, until, to] = options.decay.split(",").map(Number);
const decay = options.decay === "" ? undefined : { from, until, to };
mkdirSync(options.work, { recursive: true });
mkdirSync(options.out, { recursive: true });

const PHASES = {
  async base() {
    return Promise.all(seeds.map((seed) => makeBase(`base-${seed}`, { seed })));
  },
  /** Finds the best settings by the rewards of training tasks only, with other seeds than the runs. Later phases of
   *  this call use these settings. */
  async sweep() {
    const tried = options["sweep-seeds"].split(",").map(Number);
    await Promise.all(tried.map((seed) => makeBase(`base-${seed}`, { seed })));
    const steps = Number(options["sweep-steps"]);
    const choices = [
      [1e-4, 2],
      [1e-4, 4],
      [7e-5, 6],
      [1.5e-4, 4],
    ];
    const found = await Promise.all(
      choices.map(([rate, passes]) =>
        Promise.all(
          tried.map((seed) => plain(`base-${seed}`, { seed, steps, at: "10,20,30,40", rate, passes })),
        ),
      ),
    );
    const sum = (list) => list.reduce((total, each) => total + each, 0);
    // Rewards after the eighth step show the result of ten steps; the last three show the result of a longer run.
    const score = (runs) =>
      sum(runs.map(({ rewardMean }) => sum(rewardMean.slice(8, 11)) + sum(rewardMean.slice(-3))));
    const best = found.reduce((a, b) => (score(b) > score(a) ? b : a))[0];
    options.rate = String(best.rate);
    options.passes = String(best.passes);
    console.log(`sweep: rate ${best.rate}, passes ${best.passes}; scores ${found.map(score)}`);
    return found.flat();
  },
  async plain() {
    const runs = [];
    for (const seed of seeds)
      runs.push(await plain(`base-${seed}`, { seed, steps: Number(options.windows), at: "10,30,60" }));
    return runs;
  },
  async cost() {
    return climb("cost", { base: `base-${seeds[0]}`, seed: seeds[0], windows: options["cost-windows"] });
  },
  async profile() {
    const profile = join(options.work, "profile-files");
    const run = await climb("profile", { base: `base-${seeds[0]}`, seed: seeds[0], windows: 3, profile });
    return {
      run,
      files: JSON.parse((await output(process.execPath, [join(here, "profile.mjs"), profile]))[0]),
    };
  },
  /** Runs all seeds, the control and the plain loops in parallel. */
  async seeds() {
    const plains = (options.resume ? [] : seeds).map((seed) =>
      plain(`base-${seed}`, { seed, steps: Number(options.windows), at: "10,20,30,40,50,60" }),
    );
    const climbs = seeds.map((seed) =>
      climb(`climb-${seed}`, { base: `base-${seed}`, seed, windows: options.windows }),
    );
    const all = await Promise.all([...climbs, PHASES.control(), ...plains]);
    return {
      climbs: all.slice(0, seeds.length),
      control: all[seeds.length],
      plain: all.slice(seeds.length + 1),
    };
  },
  async control() {
    const control = {
      base: `base-${seeds[0]}`,
      seed: seeds[0],
      windows: options["control-windows"],
      kind: "frozen",
    };
    return climb("control", control);
  },
  async large() {
    const shape = {
      hidden: options["large-hidden"],
      layers: options["large-layers"],
      until: options["large-until"],
    };
    const base = await makeBase("base-large", { seed: 1, ...shape });
    const beside = await plain("base-large", {
      seed: 1,
      steps: Number(options["large-windows"]),
      at: "10,30,60",
      rate: options["large-rate"],
    });
    const large = {
      base: "base-large",
      seed: 1,
      windows: options["large-windows"],
      rate: options["large-rate"],
    };
    return { base, plain: beside, climb: await climb("large", large) };
  },
  async verify() {
    return verifyRun(`climb-${seeds[0]}`, options.windows);
  },
};

for (const phase of phases) {
  const file = join(options.out, `${phase}.json`);
  const began = Date.now();
  try {
    const result = await PHASES[phase]();
    if (phase !== "base")
      writeFileSync(file, `${JSON.stringify({ seconds: (Date.now() - began) / 1000, result }, null, 1)}\n`);
    console.log(`${phase}: done in ${((Date.now() - began) / 1000).toFixed(1)} s`);
  } catch (error) {
    writeFileSync(
      file,
      `${JSON.stringify({ seconds: (Date.now() - began) / 1000, error: String(error.stack ?? error) })}\n`,
    );
    process.exitCode = 1;
    console.log(
      `${phase}: FAILED after ${((Date.now() - began) / 1000).toFixed(1)} s: ${String(error).slice(0, 2000)}`,
    );
  }
}

async function makeBase(
  name,
  { seed, hidden = options.hidden, layers = options.layers, until = options.until },
) {
  const folder = join(options.work, name);
  if (!existsSync(join(folder, "base.json")))
    await addition("base", folder, {
      ...{ seed, hidden, layers, until, limit: options.limit, rate: options["sft-rate"] },
      ...{ batch: options["sft-batch"], every: options["sft-every"] },
    });
  const report = JSON.parse(readFileSync(join(folder, "base.json"), "utf8"));
  console.log(
    `${name}: ${report.parameters} parameters, ${report.steps} steps, held-out ${JSON.stringify(report.heldOut)}`,
  );
  return report;
}

async function plain(
  base,
  { seed, steps, at, rate = options.rate, minibatches = options.minibatches, passes = options.passes },
) {
  const prompts = Number(options.rollouts) / Number(options.samples);
  const { samples } = options;
  const lines = await addition("plain", join(options.work, base), {
    seed,
    steps,
    at,
    prompts,
    samples,
    passes,
    rate,
    minibatches,
    decay: options.decay === "" ? "0,0,1" : options.decay,
  });
  const report = JSON.parse(lines.at(-1));
  console.log(
    `plain ${base} rate ${rate} minibatches ${minibatches}: ${JSON.stringify(report.curve)}, ${report.secondsPerStep} s a step`,
  );
  return report;
}

/** One run of the loop, then its evaluation on all held-out pairs. */
async function climb(name, { base, seed, windows, kind = "grpo", rate = options.rate, profile }) {
  const at = join(options.work, name);
  const goesOn = options.resume && existsSync(join(at, "lines.jsonl"));
  if (!goesOn) rmSync(at, { recursive: true, force: true });
  mkdirSync(at, { recursive: true });
  const world = {
    ...{
      kind: "tokens",
      tasks: `../${base}/tasks.jsonl`,
      model: `../${base}`,
      family: "adder",
      sampling: { maxTokens: 4 },
    },
    ...{ python: options.python, device: options.device, maxBatch: Number(options["max-batch"]) },
    ...(options.threads === "" ? {} : { threads: Number(options.threads) }),
    heldOut: {
      tasks: `../${base}/held-out.jsonl`,
      rollouts: Number(options["held-out"]),
      every: Number(options.every),
    },
  };
  const learner = {
    kind,
    rate: Number(rate),
    passes: Number(options.passes),
    minibatches: Number(options.minibatches),
    klLimit: Number(options["kl-limit"]),
    ...(decay === undefined ? {} : { decay }),
  };
  const loop = {
    ...{
      run: name,
      book: "book",
      world,
      windows: Number(windows),
      rollouts: Number(options.rollouts),
      learner,
      seed,
    },
    ...{ samples: Number(options.samples), workers: Number(options.workers) },
  };
  writeFileSync(join(at, "loop.yaml"), JSON.stringify(loop)); // JSON is YAML
  const profiling = profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
  const printed = await output(process.execPath, [
    ...profiling,
    join(here, "stage-times.mjs"),
    join(at, "loop.yaml"),
    ...["--seconds", options.seconds],
    ...(goesOn ? ["--resume"] : []),
  ]);
  appendFileSync(join(at, "lines.jsonl"), printed.map((line) => `${line}\n`).join(""));
  const lines = readFileSync(join(at, "lines.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const summary = summarize(lines, Number(options.rollouts));
  const wanted = [...Array(Number(windows)).keys()]
    .map((i) => i + 1)
    .filter((i) => i <= 10 || i % 5 === 0 || i === Number(windows));
  const folders = wanted
    .map((i) => join(at, "book", "loop", name, `window-${i}`))
    .filter((each) => existsSync(each));
  const found = await addition("evaluate", [join(options.work, base), ...folders], {
    seed,
    tasks: join(options.work, base, "held-out.jsonl"),
  });
  const evaluated = found.map((line) => JSON.parse(line));
  console.log(`${name}: ${JSON.stringify(summary)}`);
  console.log(
    `${name}: held-out sampled (greedy): ${evaluated.map((e) => `${e.folder} ${e.sampled} (${e.greedy})`).join(", ")}`,
  );
  return { name, seed, kind, summary, evaluated, lines };
}

/** Splits the time of a window. Rollbook's own time is the time outside decoding and the step in Python. */
function summarize(lines, rollouts) {
  const of = (state) => lines.filter((each) => each.state === state);
  const mean = (list) => list.reduce((sum, each) => sum + each, 0) / Math.max(1, list.length);
  const logs = lines.flatMap((each) => (each.log === undefined ? [] : [each.log]));
  const decode = logs.flatMap((line) =>
    /-w\d+: \d+ rollouts in/.test(line) ? [Number(/, ([\d.]+) s of them decoding/.exec(line)[1])] : [],
  );
  const steps = logs.flatMap((line) => /the step took ([\d.]+) s/.exec(line)?.[1] ?? []).map(Number);
  const mismatch = logs.flatMap((line) => /differ by at most (\S+);/.exec(line)?.[1] ?? []).map(Number);
  // The first window includes the start of both Python processes.
  const after = (list) => list.slice(1);
  const ms = (state) => mean(after(of(state)).map((each) => each.ms));
  const cpu = (state) => mean(after(of(state)).map((each) => each.cpuMs));
  const stages = {
    collect: ms("sealed"),
    batch: ms("scored"),
    train: ms("trained"),
    plan: ms("planned") + ms("collecting") + ms("released"),
  };
  const [decodeMs, stepMs] = [1000 * mean(after(decode)), 1000 * mean(after(steps))];
  const windowMs = Object.values(stages).reduce((sum, each) => sum + each, 0);
  const ownMs = windowMs - decodeMs - stepMs;
  const cpuMs = ["planned", "collecting", "sealed", "scored", "trained", "released"].reduce(
    (sum, state) => sum + cpu(state),
    0,
  );
  return {
    windows: of("released").length,
    stageMs: rounded(stages),
    ...rounded({ windowMs, decodeMs, stepMs, ownMs, cpuMs }),
    ...rounded({
      ownMsPerRollout: ownMs / rollouts,
      cpuMsPerRollout: cpuMs / rollouts,
      ownShare: ownMs / windowMs,
    }),
    perRolloutMs: rounded({
      collect: (stages.collect - decodeMs) / rollouts,
      batch: stages.batch / rollouts,
      train: (stages.train - stepMs) / rollouts,
    }),
    largestMismatch: Math.max(...mismatch),
    rewardMean: of("scored").map((each) => each.rewardMean),
    heldOut: of("judged").flatMap((each) =>
      each.heldOut === undefined ? [] : [[each.window, each.heldOut]],
    ),
    lastTrainLog: logs.filter((line) => line.includes("recomputed")).at(-1),
  };
}

function rounded(facts) {
  return Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [name, Math.round(value * 1000) / 1000]),
  );
}

/** Verifies from the last revision to the first task, then flips one recorded log-probability and verifies again. */
async function verifyRun(name, windows) {
  const book = join(options.work, name, "book");
  const cli = (args) =>
    spawnSync(process.execPath, [join(dist, "cli", "main.js"), ...args], {
      encoding: "utf8",
      maxBuffer: 1 << 28,
    });
  const began = Date.now();
  const whole = cli(["verify", `${name}-w${windows}`, "--book", book]);
  const seconds = (Date.now() - began) / 1000;
  console.log(
    `verify ${name}-w${windows}: exit ${whole.status} in ${seconds} s\n${whole.stdout.slice(-3000)}${whole.stderr.slice(-2000)}`,
  );
  const flipped = flipLogprob(book);
  const after = cli(["verify", "--book", book]);
  console.log(
    `after one flipped bit in ${flipped}: exit ${after.status}\n${(after.stdout + after.stderr).slice(-2000)}`,
  );
  return {
    status: whole.status,
    seconds,
    stdout: whole.stdout.slice(-6000),
    flipped,
    found: after.status === 1,
    said: (after.stdout + after.stderr).slice(-3000),
  };
}

/** Flips one bit in the first f32 column of log-probabilities in a pack. */
function flipLogprob(book) {
  const show = spawnSync("python3", [join(here, "flip_logprob.py"), book], { encoding: "utf8" });
  if (show.status !== 0) throw new Error(show.stderr);
  return show.stdout.trim();
}

async function addition(command, target, flags) {
  const targets = Array.isArray(target) ? target : [target];
  const given = Object.entries({
    ...flags,
    device: options.device,
    ...(options.threads === "" ? {} : { threads: options.threads }),
  });
  return output(options.python, [
    join(here, "addition.py"),
    command,
    ...targets,
    ...given.flatMap(([name, value]) => [`--${name}`, String(value)]),
  ]);
}

function output(program, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, PYTHONUNBUFFERED: "1" },
    });
    let [out, err] = ["", ""];
    child.stdout.on("data", (chunk) => {
      out += chunk;
    });
    child.stderr.on("data", (chunk) => {
      err = (err + chunk).slice(-4000);
    });
    child.on("error", reject);
    child.on("close", (code) =>
      code === 0
        ? resolve(out.split("\n").filter((line) => line !== ""))
        : reject(
            new Error(
              `${program} ${args.slice(0, 2).join(" ")} ended with ${code}: ${out.slice(-1500)} ${err}`,
            ),
          ),
    );
  });
}
