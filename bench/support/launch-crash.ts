/** Kills launchers and workers with SIGKILL at random moments, gives the same command again, and counts.
 *  In: number of kills, seed. Out: how many kills broke no promise: a result that was told stays the result, and when
 *  the launch is done the book holds exactly one artifact for each rollout. The agent draws from its own process's
 *  randomness, so that a rollout run twice would show as two different artifacts. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { RollbookError } from "../../src/base/errors.ts";
import { type Rng, rngFrom, systemClock } from "../../src/base/index.ts";
import { openRecord, RolloutContent, RolloutEnvelope } from "../../src/contract/index.ts";
import { openBook } from "../../src/store/index.ts";

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const [TASKS, SAMPLES] = [15, 4];
const KILLS_PER_BOOK = 10;
/** Runs without a kill that may be needed to finish: a run ends early when an item has used up its attempts. */
const FINISHING_RUNS = 6;
const AGENT = `export default async () => {
  await new Promise((next) => setTimeout(next, 5 + Math.random() * 60));
  return Math.random();
};
`;

export async function crashLaunches(options: {
  readonly kills: number;
  readonly seed: bigint;
  readonly onFailure: (what: string) => void;
}): Promise<{ passed: number; failed: number }> {
  if (!existsSync(MAIN))
    throw new RollbookError("no-build", { path: MAIN }, "dist/ is missing. Run: npm run build");
  const rng = rngFrom(options.seed);
  const tally = { passed: 0, failed: 0 };
  while (tally.passed + tally.failed < options.kills) {
    const left = options.kills - tally.passed - tally.failed;
    const { kills, faults } = await crashOneBook(Math.min(KILLS_PER_BOOK, left), rng);
    for (const fault of faults) options.onFailure(fault);
    tally[faults.length === 0 ? "passed" : "failed"] += kills;
  }
  return tally;
}

async function crashOneBook(kills: number, rng: Rng): Promise<{ kills: number; faults: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-launch-crash-"));
  const told = new Map<string, string>();
  const faults: string[] = [];
  try {
    writeFileSync(join(folder, "agent.mjs"), AGENT);
    const rows = Array.from({ length: TASKS }, (_, i) => `${JSON.stringify({ i })}\n`);
    writeFileSync(join(folder, "tasks.jsonl"), rows.join(""));
    let struck = 0;
    while (struck < kills) {
      const ends = [killSoon(startLaunch(folder), rng), killSoon(startWorker(folder), rng)];
      for (const { lines } of await Promise.all(ends)) faults.push(...hear(lines, told));
      struck += ends.length;
    }
    faults.push(...(await finish(folder, told)));
    // Without a finished launch there may be no book to count in; the fault is noted already.
    if (existsSync(join(folder, "book", "book.json"))) faults.push(...(await checkBook(folder, told)));
    return { kills: struck, faults };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function startLaunch(folder: string): ChildProcess {
  return start(folder, ["launch", "--tasks", "tasks.jsonl", "--samples", String(SAMPLES)]);
}

/** Ends at once, with an error, while there is no queue yet: that is no fault. */
function startWorker(folder: string): ChildProcess {
  return start(folder, ["worker", "--queue", "book/queue.db"]);
}

function start(folder: string, words: readonly string[]): ChildProcess {
  const common = [
    "--agent",
    "agent.mjs",
    "--book",
    "book",
    "--concurrency",
    "4",
    "--claim-ttl",
    "2",
    "--json",
  ];
  return spawn(process.execPath, [MAIN, ...words, ...common], {
    cwd: folder,
    env: { ...process.env, ROLLBOOK_HOME: join(folder, "home") },
    stdio: ["ignore", "pipe", "ignore"],
  });
}

/** From before it has opened anything to well into its work. */
async function killSoon(child: ChildProcess, rng: Rng): Promise<{ lines: string[] }> {
  const end = endOf(child);
  await Promise.race([sleep(100 + rng.below(2_000)), end]);
  child.kill("SIGKILL");
  return end;
}

/** What it printed; a line cut off by the kill was not said to anybody. */
async function endOf(child: ChildProcess): Promise<{ lines: string[]; code: number | null }> {
  let output = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { lines: output.split("\n").slice(0, -1), code };
}

/** Remembers what was told; what was told before must not change. */
function hear(lines: readonly string[], told: Map<string, string>): string[] {
  const faults: string[] = [];
  for (const line of lines) {
    const { kind, rolloutId, envelope } = JSON.parse(line);
    if (kind !== "rollout" || envelope === undefined) continue;
    const known = told.get(rolloutId) ?? envelope;
    if (known !== envelope) faults.push(`${rolloutId} was ${known}, now it is ${envelope}`);
    told.set(rolloutId, known);
  }
  return faults;
}

async function finish(folder: string, told: Map<string, string>): Promise<string[]> {
  const faults: string[] = [];
  for (let run = 0; run < FINISHING_RUNS; run++) {
    const { lines, code } = await endOf(startLaunch(folder));
    faults.push(...hear(lines, told));
    if (code === 0) return faults;
  }
  return [...faults, `the launch was not done after ${FINISHING_RUNS} runs without a kill`];
}

/** Every rollout was told, each told envelope is there, and no rollout has two. */
async function checkBook(folder: string, told: ReadonlyMap<string, string>): Promise<string[]> {
  const faults: string[] = [];
  const found = new Map<string, Set<string>>();
  const book = await openBook(join(folder, "book"), { clock: systemClock, mode: "read" });
  try {
    for await (const item of book.scan()) {
      if (item.type === "damage") faults.push(`the book is damaged: ${item.finding.message}`);
      if (item.type !== "blob" || item.kind !== RolloutEnvelope.kind) continue;
      const { content } = openRecord(RolloutEnvelope, item.bytes);
      const { rolloutId } = openRecord(RolloutContent, (await book.get(content))!.bytes);
      found.set(rolloutId, (found.get(rolloutId) ?? new Set()).add(item.digest));
    }
  } finally {
    await book.close();
  }
  if (told.size !== TASKS * SAMPLES) faults.push(`${told.size} of ${TASKS * SAMPLES} rollouts were told`);
  if (found.size !== told.size) faults.push(`the book holds ${found.size} rollouts, ${told.size} were told`);
  for (const [rolloutId, envelope] of told)
    if (found.get(rolloutId)?.has(envelope) !== true)
      faults.push(`${rolloutId} was told and is not in the book`);
  for (const [rolloutId, envelopes] of found)
    if (envelopes.size > 1) faults.push(`${rolloutId} has ${envelopes.size} artifacts`);
  return faults;
}
