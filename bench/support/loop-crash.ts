/** Kills synchronous training loops with SIGKILL at random moments and resumes them until they are done.
 *  In: number of runs, seed. Out: number of runs with exactly the digests of an uninterrupted run: of its last
 *  transition, which commits to all before it, of every revision, and of every batch's content;
 *  in a book that verifies. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { canonicalize, type Json, parseId, type Rng, RollbookError, rngFrom } from "../../src/base/index.ts";
import { readTransitions } from "../../src/book/loop/index.ts";
import { useBook } from "../../src/book/open/index.ts";
import { encodeWire, LoopTransition } from "../../src/contract/index.ts";
import { UNEQUAL, writeLoop } from "../../test/support/loop-world.ts";
import { MAIN, requireBuild } from "./build.ts";

const RUN = "crash";
/** Two at a time: a run waits for the disk half of the time. */
const AT_ONCE = 2;
/** Most kills per run. A killed run may be killed again while it resumes. */
const MOST_KILLS = 2;

/** A run whose policies pass the gate, so that the second window depends on the whole first window. */
const CONFIG = { ...UNEQUAL, run: RUN, windows: 2 };

export async function crashLoops(options: {
  readonly runs: number;
  readonly seed: bigint;
  readonly onFailure: (what: string) => void;
}): Promise<{ passed: number; failed: number }> {
  requireBuild();
  const rng = rngFrom(options.seed);
  const began = performance.now();
  const expected = await inFolder(async (folder) => {
    await command(folder, ["run", "start", "--config", "loop.yaml"]);
    return digestsOf(folder);
  });
  const lasts = performance.now() - began;
  const tally = { passed: 0, failed: 0, kills: 0 };
  let next = 0;
  const work = async () => {
    while (next < options.runs) {
      const own = rng.split(`run ${next++}`);
      const { kills, fault } = await crashOne({ rng: own, lasts, expected });
      tally.kills += kills;
      tally[fault === undefined ? "passed" : "failed"]++;
      if (fault !== undefined) options.onFailure(fault);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  console.error(`${tally.kills} kills`);
  return { passed: tally.passed, failed: tally.failed };
}

async function crashOne(options: {
  readonly rng: Rng;
  readonly lasts: number;
  readonly expected: string;
}): Promise<{ kills: number; fault?: string }> {
  const { rng, lasts, expected } = options;
  return inFolder(async (folder) => {
    let kills = 0;
    try {
      const wanted = 1 + rng.below(MOST_KILLS);
      for (let done = false; !done && kills < wanted; ) {
        done = await killSoon(folder, 300 + rng.below(Math.ceil(lasts)));
        if (!done) kills++;
        // A run that ends before its first kill proves nothing: start it again.
        else if (kills === 0) {
          rmSync(join(folder, "book"), { recursive: true, force: true });
          done = false;
        }
      }
      await command(folder, RESUME);
      const actual = await digestsOf(folder);
      await command(folder, ["verify", "--book", "book"]);
      return actual === expected
        ? { kills }
        : { kills, fault: `after ${kills} kills: ${difference(actual, expected)}` };
    } catch (error) {
      return { kills, fault: `after ${kills} kills: ${String(error)}` };
    }
  });
}

const RESUME = ["run", "start", "--resume", "--config", "loop.yaml"];

/** Resumes the run and kills it after `afterMs`. True if the run finished before. */
async function killSoon(folder: string, afterMs: number): Promise<boolean> {
  const child = spawn(process.execPath, [MAIN, ...RESUME], {
    ...{ cwd: folder, env: envOf(folder), stdio: "ignore" },
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  await Promise.race([ended, sleep(afterMs)]);
  child.kill("SIGKILL");
  return (await ended)[0] === 0;
}

async function command(folder: string, words: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [MAIN, ...words], {
    ...{ cwd: folder, env: envOf(folder), stdio: ["ignore", "ignore", "pipe"] },
  });
  let said = "";
  child.stderr!.on("data", (text: Buffer) => {
    said += text.toString();
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new RollbookError("bench-failed", { words, code }, `${words.join(" ")}: ${said}`);
}

/** Every transition of the run in canonical form, with its digest. Transitions contain batches and revisions. */
async function digestsOf(folder: string): Promise<string> {
  const transitions = await useBook(join(folder, "book"), { mode: "read" }, (book) =>
    readTransitions(book, parseId(RUN)),
  );
  return transitions
    .map(({ digest, record }) => `${digest} ${canonicalize(encodeWire(LoopTransition, record) as Json)}`)
    .sort()
    .join("\n");
}

/** Describes the transitions that only one of two runs has. */
function difference(actual: string, expected: string): string {
  const [ours, theirs] = [actual.split("\n"), expected.split("\n")];
  const only = ours.filter((line) => !theirs.includes(line));
  return `${only.length} of ${ours.length} transitions differ, first ${only[0] ?? theirs.find((line) => !ours.includes(line))}`;
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-loop-crash-"));
  try {
    writeLoop(folder, CONFIG);
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function envOf(folder: string): NodeJS.ProcessEnv {
  return { ...process.env, ROLLBOOK_HOME: join(folder, "home"), ROLLBOOK_BOOK: join(folder, "book") };
}
