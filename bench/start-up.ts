/** The start-up cost of the command line: `rollbook --help` and `rollbook --version` compared with bare node, in turns.
 *  Processor time of the whole process, user and system, as the shell counts it.
 *  The machine's load hardly changes it. */
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { MAIN, requireBuild } from "./support/build.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  "node -e 0": ["-e", "0"],
  "rollbook --help": [MAIN, "--help"],
  "rollbook --version": [MAIN, "--version"],
};

export const bench: Bench = {
  summary: "start-up of the command line beside bare node, in processor time",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: { rounds: { type: "string", default: "15" }, json: { type: "boolean", default: false } },
    });
    requireBuild();
    const names = Object.keys(PROGRAMS);
    const runs = new Map<string, Run[]>(names.map((name) => [name, []]));
    // The first round fills the disk caches and does not count.
    for (let round = 0; round <= Number(values.rounds); round++)
      for (const name of names) {
        const run = runOnce(PROGRAMS[name]!);
        if (round > 0) runs.get(name)!.push(run);
      }
    const bare = median(runs.get(names[0]!)!.map(({ cpuMs }) => cpuMs));
    printTable(
      names.map((name) => {
        const cpu = runs.get(name)!.map(({ cpuMs }) => cpuMs);
        const wall = runs.get(name)!.map(({ wallMs }) => wallMs);
        const [low, high] = [quantile(cpu, 0.25), quantile(cpu, 0.75)];
        return {
          program: name,
          "processor time, ms": median(cpu),
          quartiles: `${low.toFixed(0)} to ${high.toFixed(0)}`,
          "wall-clock time, ms": median(wall),
          "× bare node": median(cpu) / bare,
        };
      }),
      args,
    );
  },
};

interface Run {
  readonly cpuMs: number;
  readonly wallMs: number;
}

function runOnce(words: readonly string[]): Run {
  const started = performance.now();
  const { stderr, status } = spawnSync(
    "bash",
    ["-c", 'TIMEFORMAT="%3U %3S"; time "$@" > /dev/null', "time", process.execPath, ...words],
    { encoding: "utf8" },
  );
  const wallMs = performance.now() - started;
  const [user, system] = stderr.trim().split(" ").map(Number);
  if (status !== 0 || user === undefined || system === undefined || !Number.isFinite(user + system))
    throw new Error(`${words.join(" ")} ended with ${status}: ${stderr}`);
  return { cpuMs: 1000 * (user + system), wallMs };
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}
