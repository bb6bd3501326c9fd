/** The cost of a sandbox: bubblewrap compared with the same program unsandboxed, warm Docker compared with `docker
 *  run`, and the number of small tasks per second of each engine. Contenders alternate, so that drift affects all
 *  equally. */
import { spawn } from "node:child_process";
import { check as dockerIsHere } from "../scripts/setup/sandbox-docker.mjs";
import { openSandbox } from "../src/collect/sandbox/open.ts";
import type { Files, Program, Sandbox } from "../src/collect/sandbox/sandbox.ts";
import { startPrivateDaemon } from "../test/support/private-daemon.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

interface Row extends Record<string, string | number> {
  readonly measure: string;
  readonly value: number;
  readonly unit: string;
  readonly bar: string;
}

export const bench: Bench = {
  summary: "sandbox overhead per task, tasks a second by engine, warm Docker against docker run",
  async run(args) {
    const rows = [...(await benchBubblewrap()), ...(await benchQuickjs()), ...(await benchDocker())];
    printTable(rows, args);
  },
};

const ROUNDS = 40;
const TRUE: Program = { kind: "command", argv: ["true"] };
const PYTHON: Program = { kind: "python", entry: "main.py" };
const PYTHON_FILES: Files = { "main.py": "print(6 * 7)\n" };
const SCRIPT: Program = { kind: "javascript", entry: "main.mjs" };
const SCRIPT_FILES: Files = { "main.mjs": "console.log(6 * 7);\n" };

async function benchBubblewrap(): Promise<Row[]> {
  const sandbox = await openSandbox({ engine: "bubblewrap", workers: 4 });
  try {
    const [inside, outside] = await turns(
      () => sandbox.exec(TRUE),
      () => spawned("true", []),
      ROUNDS,
    );
    return [
      row("bubblewrap: overhead of a task over the bare program", inside - outside, "ms", "≤ 15"),
      row("bubblewrap: Python tasks, 4 workers", await rate(sandbox, PYTHON, PYTHON_FILES), "1/s", "≥ 60"),
      row("bubblewrap: CPU of a Python task, its sandbox and its caller", await cpuMs(sandbox), "ms", "≤ 33"),
      row("bubblewrap: Node tasks, 4 workers", await rate(sandbox, SCRIPT, SCRIPT_FILES), "1/s", ""),
    ];
  } finally {
    await sandbox.close();
  }
}

async function benchQuickjs(): Promise<Row[]> {
  const sandbox = await openSandbox({ engine: "quickjs", workers: 2 });
  try {
    return [
      row("QuickJS: JavaScript tasks, 2 workers", await rate(sandbox, SCRIPT, SCRIPT_FILES), "1/s", ""),
    ];
  } finally {
    await sandbox.close();
  }
}

async function benchDocker(): Promise<Row[]> {
  if (!dockerIsHere())
    return [{ measure: "Docker: absent here (needs root and dockerd)", value: 0, unit: "", bar: "" }];
  const daemon = await startPrivateDaemon();
  try {
    const sandbox = await openSandbox({
      engine: "docker",
      workers: 1,
      docker: { socketPath: daemon.socketPath },
    });
    try {
      const [warm, run] = await turns(
        () => sandbox.exec(TRUE),
        () => dockerRun(daemon.socketPath),
        ROUNDS / 4,
      );
      return [
        row("Docker: a task in a warm container", warm, "ms", ""),
        row("Docker: docker run of the same task", run, "ms", ""),
        row("Docker: warm container against docker run", run / warm, "×", "≥ 2"),
      ];
    } finally {
      await sandbox.close();
    }
  } finally {
    await daemon.stop();
  }
}

/** The same limits as the engine's, with the command line that a script would use. */
function dockerRun(socketPath: string): Promise<void> {
  return spawned("docker", [
    ...["-H", `unix://${socketPath}`, "run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL"],
    ...[
      "--memory",
      "256m",
      "--memory-swap",
      "256m",
      "--pids-limit",
      "64",
      "--cpus",
      "1",
      "-u",
      "65534:65534",
    ],
    ...["--security-opt", "no-new-privileges", "--tmpfs", "/tmp:size=64m", "rollbook-sandbox:1", "true"],
  ]);
}

/** Median milliseconds of each contender, measured in turns. The first turn is a warm-up and does not count. */
async function turns(
  first: () => Promise<unknown>,
  second: () => Promise<unknown>,
  rounds: number,
): Promise<[number, number]> {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round <= rounds; round++) {
    for (const [i, contender] of [first, second].entries()) {
      const start = performance.now();
      await contender();
      if (round > 0) times[i]!.push(performance.now() - start);
    }
  }
  return [median(times[0]), median(times[1])];
}

/** Tasks per second with every worker busy: the median of five slices of a second. */
async function rate(sandbox: Sandbox, program: Program, files: Files): Promise<number> {
  const slices: number[] = [];
  for (let slice = 0; slice < 6; slice++) {
    const start = performance.now();
    let done = 0;
    const caller = async () => {
      while (performance.now() - start < 1_000) {
        const { exitCode } = await sandbox.exec(program, files);
        if (exitCode !== 0) throw new Error("a benchmarked program failed");
        done++;
      }
    };
    await Promise.all(Array.from({ length: 8 }, caller));
    if (slice > 0) slices.push((done / (performance.now() - start)) * 1000);
  }
  return median(slices);
}

/** CPU time is independent of the machine's load: 33 ms per task is 60 tasks per second on two cores. */
async function cpuMs(sandbox: Sandbox): Promise<number> {
  const start = process.cpuUsage();
  let inside = 0;
  for (let i = 0; i < ROUNDS; i++)
    inside += (await sandbox.exec(PYTHON, PYTHON_FILES)).usage.cpuMs ?? Number.NaN;
  const { user, system } = process.cpuUsage(start);
  return (inside + (user + system) / 1000) / ROUNDS;
}

function spawned(command: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args], { stdio: ["ignore", "pipe", "pipe"] });
    const said: Buffer[] = [];
    child.stderr.on("data", (chunk: Buffer) => said.push(chunk));
    child.stdout.resume();
    child.on("error", reject);
    child.on("close", (code) =>
      code === 0 ? resolve() : reject(new Error(`${command} ended with ${code}: ${Buffer.concat(said)}`)),
    );
  });
}

function row(measure: string, value: number, unit: string, bar: string): Row {
  return { measure, value, unit, bar };
}
