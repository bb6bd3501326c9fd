/** Kills writers and collectors of a book with SIGKILL at random moments and checks the book afterwards.
 *  In: number of kills, seed. Out: number of kills that left the book as promised: no damage, every acknowledged root
 *  present with all blobs it names, and every present root complete. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Digest, type Rng, rngFrom, systemClock } from "../../src/base/index.ts";
import { Task } from "../../src/contract/index.ts";
import { openBook } from "../../src/store/index.ts";
import { compiledModules } from "./build.ts";

export interface CrashOptions {
  readonly kills: number;
  readonly seed: bigint;
  /** Number of writers that fill one book at the same time, beside one process that collects its garbage. */
  readonly writers?: number;
  /** Called with each broken promise. */
  readonly onFailure?: (what: string) => void;
}

const ROUNDS_PER_BOOK = 8;

export async function crashStore(options: CrashOptions): Promise<{ passed: number; failed: number }> {
  const { kills, seed, writers = 3, onFailure = () => undefined } = options;
  const rng = rngFrom(seed);
  const scratch = mkdtempSync(join(tmpdir(), "rollbook-crash-"));
  const module = pathToFileURL(join(compiledModules(), "store", "index.js")).href;
  const tally = { passed: 0, failed: 0 };
  let acknowledged = new Set<string>();
  try {
    for (let round = 0; tally.passed + tally.failed < kills; round++) {
      const book = join(scratch, String(Math.floor(round / ROUNDS_PER_BOOK)));
      if (round % ROUNDS_PER_BOOK === 0) acknowledged = new Set();
      const names = Array.from({ length: writers }, (_, i) => `${round}-${i}`);
      const victims = [
        ...names.map((name) => killSoon(startProcess("store-writer", [module, book, name]), rng)),
        killSoon(startProcess("store-collector", [module, book]), rng),
      ];
      const ends = await Promise.all(victims);
      for (const { lines } of ends.slice(0, -1)) for (const digest of lines) acknowledged.add(digest);
      const faults = [...ends.flatMap(({ fault }) => fault ?? []), ...(await checkBook(book, acknowledged))];
      for (const fault of faults) onFailure(`round ${round}: ${fault}`);
      tally[faults.length === 0 ? "passed" : "failed"] += victims.length;
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return tally;
}

/** Starts a program from this folder; its errors appear on this process's stderr. */
export function startProcess(name: string, args: readonly string[]): ChildProcess {
  const program = fileURLToPath(new URL(`./${name}.mjs`, import.meta.url));
  return spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "inherit"] });
}

interface ProcessEnd {
  /** The printed lines. A line that the kill cut off does not count as printed. */
  readonly lines: string[];
  /** Set if the process failed on its own. */
  readonly fault?: string;
}

export async function endOf(child: ChildProcess): Promise<ProcessEnd> {
  let output = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  const lines = output.split("\n").slice(0, -1);
  return code === null || code === 0
    ? { lines }
    : { lines, fault: `${child.spawnargs[1]} exited with ${code}` };
}

/** Half of the kills hit the process while it starts and recovers, half while it works. */
async function killSoon(child: ChildProcess, rng: Rng): Promise<ProcessEnd> {
  const end = endOf(child);
  const [early, delayMs] = [rng.below(2) === 0, rng.below(150)];
  if (!early) await Promise.race([once(child.stdout!, "data"), sleep(3000)]);
  await sleep(early ? 40 + delayMs : delayMs);
  child.kill("SIGKILL");
  return end;
}

/** Broken promises to the writers of a book of groups. */
export async function checkBook(root: string, acknowledged: ReadonlySet<string>): Promise<string[]> {
  const book = await openBook(root, { clock: systemClock });
  const faults: string[] = [];
  const roots = new Map<Digest, Digest[]>();
  const seen = new Set<string>();
  for (const recovery of book.recovered)
    if (recovery.damage.length > 0) faults.push(`recovery: ${JSON.stringify(recovery)}`);
  for await (const item of book.scan()) {
    if (item.type === "damage") {
      faults.push(JSON.stringify(item.finding));
      continue;
    }
    seen.add(item.digest);
    if (item.type === "blob" && item.kind === Task.kind)
      roots.set(item.digest, JSON.parse(Buffer.from(item.bytes).toString()).children);
  }
  await book.close();
  for (const digest of acknowledged) if (!roots.has(digest as Digest)) faults.push(`${digest} is lost`);
  for (const [digest, children] of roots)
    for (const child of children)
      if (!seen.has(child)) faults.push(`${digest} names ${child}, which is lost`);
  return faults;
}
