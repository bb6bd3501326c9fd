/** Kills processes that update one bandit's state with SIGKILL at random moments, three at a time, while decisions come
 *  in. In: number of kills, seed. Out: number of kills that broke no promise. In the end every decision of the book is
 *  counted exactly once, a reported state is never undone, and the book is intact. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { RollbookError } from "../../src/base/errors.ts";
import { digestJson } from "../../src/base/index.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { readCheckpoint } from "../../src/policy/index.ts";
import { MAIN, requireBuild } from "./build.ts";

const TRAINERS = 3;
const ROUNDS_PER_BOOK = 6;
const DECISIONS_PER_ROUND = 40;

export async function crashBandits(options: {
  readonly kills: number;
  readonly seed: bigint;
  readonly onFailure: (what: string) => void;
}): Promise<{ passed: number; failed: number }> {
  requireBuild();
  const rng = rngFrom(options.seed);
  const tally = { passed: 0, failed: 0 };
  while (tally.passed + tally.failed < options.kills) {
    const left = options.kills - tally.passed - tally.failed;
    const rounds = Math.min(ROUNDS_PER_BOOK, Math.ceil(left / TRAINERS));
    const faults = await crashOneBook(rounds, rng);
    for (const fault of faults) options.onFailure(fault);
    tally[faults.length === 0 ? "passed" : "failed"] += rounds * TRAINERS;
  }
  return tally;
}

async function crashOneBook(rounds: number, rng: Rng): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-bandit-crash-"));
  try {
    finishNow(folder, ["init"]);
    const sums = { small: 0, large: 0 };
    let told = 0;
    for (let round = 0; round < rounds; round++) {
      addDecisions(folder, { round, rng, sums });
      const trainers = Array.from({ length: TRAINERS }, (_, i) => start(folder, trainWords(`${round}-${i}`)));
      // Decisions come in while the trainers run.
      addDecisions(folder, { round: rounds + round, rng, sums });
      for (const end of await Promise.all(trainers.map((child) => killSoon(child, rng))))
        told = Math.max(told, end);
    }
    return checkState(folder, { expected: 2 * rounds * DECISIONS_PER_ROUND, sums, told });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function trainWords(name: string): string[] {
  return [
    "train",
    "ucb",
    "--out",
    `policy-${name}`,
    "--id",
    `r-${name}`,
    "--split",
    "all",
    "--no-baseline",
    "--json",
  ];
}

/** Seals rollouts of one decision each, and adds their rewards to `sums`. */
function addDecisions(
  folder: string,
  { round, rng, sums }: { round: number; rng: Rng; sums: Record<"small" | "large", number> },
): void {
  const lines = Array.from({ length: DECISIONS_PER_ROUND }, (_, i) => {
    const chosen = rng.below(2);
    const reward = rng.below(1024) / 1024; // exact in binary: sums do not depend on their order
    sums[chosen === 0 ? "small" : "large"] += reward;
    return JSON.stringify(draftOf(`r-${round}-${i}`, chosen, reward));
  });
  finishNow(folder, ["artifact", "import", "--no-sign", "-"], lines.join("\n"));
}

function draftOf(rolloutId: string, chosen: number, reward: number) {
  const candidates = ["small", "large"].map((id) => ({
    id,
    selectable: true,
    reasons: [],
    probability: 0.5,
  }));
  const revision = { id: "even", digest: digestJson("bench.policy", "even") };
  return {
    schema: "rollbook.rollout.v1",
    rolloutId,
    environment: "bench@1",
    task: { id: "t" },
    seed: "1",
    dataSource: "synthetic",
    sampling: {},
    calls: [],
    streams: [
      { level: "step", family: "router", steps: [{ revision, turn: 0, candidates, chosen, reward }] },
    ],
    scores: [],
    ending: { kind: "terminal" },
    envelope: { worker: "bench", startedAtMs: 1, endedAtMs: 2 },
  };
}

function checkState(
  folder: string,
  { expected, sums, told }: { expected: number; sums: Record<"small" | "large", number>; told: number },
): string[] {
  const last = JSON.parse(finishNow(folder, trainWords("last")));
  const again = JSON.parse(finishNow(folder, trainWords("again")));
  const { tensors, arms } = readCheckpoint(join(folder, "policy-last")).model;
  const count = (tensors.counts!.data as Float64Array).reduce((sum, each) => sum + each, 0);
  const faults: string[] = [];
  if (last.rows !== expected || count !== expected)
    faults.push(`${last.rows} decisions, ${count} counted, of ${expected}`);
  if (told > expected) faults.push(`a trainer told of ${told} decisions, there are ${expected}`);
  arms.forEach((arm, i) => {
    const sum = tensors.sums!.data[i];
    if (sum !== sums[arm as "small" | "large"]) faults.push(`${arm} brought ${sum}`);
  });
  if (again.added !== 0 || again.data !== last.data) faults.push("a second update found something new");
  finishNow(folder, ["verify"]);
  return faults;
}

function start(folder: string, words: readonly string[]): ChildProcess {
  return spawn(process.execPath, [MAIN, ...words], {
    cwd: folder,
    env: envOf(folder),
    stdio: ["ignore", "pipe", "inherit"],
  });
}

function finishNow(folder: string, words: readonly string[], input = ""): string {
  const options = { cwd: folder, env: envOf(folder), input, encoding: "utf8" } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...words], options);
  if (status !== 0)
    throw new RollbookError("bench-failed", { words, status }, `${words.join(" ")}: ${stderr}`);
  return stdout;
}

function envOf(folder: string): NodeJS.ProcessEnv {
  return { ...process.env, ROLLBOOK_BOOK: join(folder, "book"), ROLLBOOK_HOME: join(folder, "home") };
}

/** Returns the number of decisions that the trainer reported; 0 if it was killed before. */
async function killSoon(child: ChildProcess, rng: Rng): Promise<number> {
  let output = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const end = once(child, "close");
  await Promise.race([sleep(150 + rng.below(900)), end]);
  child.kill("SIGKILL");
  await end;
  return output.endsWith("\n") ? (JSON.parse(output) as { rows: number }).rows : 0;
}
