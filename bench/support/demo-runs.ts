/** Runs demos as a user does, uninterrupted and killed, and prints a table. In: number of seeds, full or small size.
 *  Out: number of claims that held. A small demo has too few rows for the gate: only its digests are compared. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Rng, rngFrom } from "../../src/base/index.ts";
import type { DemoSummary } from "../../src/view/runs/demo-summary.ts";
import { MAIN, requireBuild } from "./build.ts";
import { printTable } from "./interleave.ts";

const SMALL = ["--windows", "1", "--rollouts", "40"];

interface DemoRan {
  readonly summary: DemoSummary | undefined;
  readonly wallS: number;
  readonly said: string;
}

export async function measureDemos(options: {
  readonly seeds: number;
  readonly full: boolean;
  readonly seed: bigint;
}): Promise<{ passed: number; failed: number }> {
  requireBuild();
  const rng = rngFrom(options.seed);
  const folder = mkdtempSync(join(tmpdir(), "rollbook-demos-"));
  const size = options.full ? [] : SMALL;
  const rows: Record<string, string | number>[] = [];
  const tally = { passed: 0, failed: 0 };
  const claim = (holds: boolean) => tally[holds ? "passed" : "failed"]++;
  try {
    for (let seed = 1; seed <= options.seeds; seed++) {
      const out = join(folder, `whole-${seed}`);
      const { summary, wallS, said } = await demo([...size, "--seed", String(seed), "--out", out]);
      if (summary === undefined) throw new Error(`seed ${seed}: ${said}`);
      const killed = join(folder, `killed-${seed}`);
      const cut = await demo([...size, "--seed", String(seed), "--out", killed], killPoint(said, rng));
      const { summary: again } = await demo(["--resume", "--out", killed]);
      const same = cut.summary === undefined && again?.digest === summary.digest;
      if (options.full) claim(summary.gapClosed >= 0.5);
      claim(same && summary.pack.verified);
      rows.push(rowOf(summary, { seed, wallS, same }));
      for (const each of [out, killed]) rmSync(each, { recursive: true, force: true });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  printTable(rows, []);
  return tally;
}

function rowOf(
  { windows, behaviourValue, servedValue, optimum, gapClosed, digest }: DemoSummary,
  { seed, wallS, same }: { seed: number; wallS: number; same: boolean },
): Record<string, string | number> {
  return {
    seed,
    "reward by window": windows.map(({ reward }) => reward.mean.toFixed(3)).join(" "),
    released: windows.map(({ outcome, serves }) => (outcome === "released" ? serves : "–")).join(" "),
    ...{ behaviour: behaviourValue, served: servedValue, optimum, "gap closed": gapClosed, seconds: wallS },
    "same after kill": same ? digest.slice(7, 19) : "NO",
  };
}

/** A random line of the progress, except the last ones, and a random part of the time that its stage took. Counted in
 *  lines, because on a busy machine the same stage takes several times as long. */
function killPoint(said: string, rng: Rng): { line: number; delayMs: number } {
  const stages = said.split("\n").flatMap((line) => line.match(/^ *([\d.]+) s {2}/)?.[1] ?? []);
  const line = 1 + Math.floor(rng.float() * (stages.length - 4));
  return { line, delayMs: 1000 * rng.float() * Number(stages[line]) };
}

/** `kill`: kills the process `delayMs` after it has printed `line` lines of progress. */
export async function demo(
  words: readonly string[],
  kill?: { line: number; delayMs: number },
  env: NodeJS.ProcessEnv = process.env,
): Promise<DemoRan> {
  const began = performance.now();
  const child = spawn(process.execPath, [MAIN, "demo", ...words, "--json"], { env });
  let [data, said] = ["", ""];
  let timer: NodeJS.Timeout | undefined;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    data += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
    if (kill !== undefined && timer === undefined && said.split(/ s {2}/).length > kill.line)
      timer = setTimeout(() => child.kill("SIGKILL"), kill.delayMs);
  });
  await once(child, "close");
  clearTimeout(timer);
  const summary = data === "" ? undefined : (JSON.parse(data) as DemoSummary);
  return { summary, wallS: (performance.now() - began) / 1000, said };
}
