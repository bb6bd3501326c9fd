/** Kills writers of a book with SIGKILL at random moments and checks what the book says afterwards.
 *  In: number of kills, seed. Out: how many kills left the book as promised: no damage, every acknowledged root
 *  there with all it names, and every root that is there complete. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Digest, type Rng, rngFrom, systemClock } from "../../src/base/index.ts";
import { openBook } from "../../src/store/index.ts";

export interface CrashOptions {
  readonly kills: number;
  readonly seed: bigint;
  /** Writers that fill one book at the same time, all killed in a round. */
  readonly writers?: number;
  /** Called with each broken promise. */
  readonly onFailure?: (what: string) => void;
}

const REPO = fileURLToPath(new URL("../..", import.meta.url));
const WRITER = fileURLToPath(new URL("./store-writer.mjs", import.meta.url));
const ROUNDS_PER_BOOK = 8;

export async function crashWriters(options: CrashOptions): Promise<{ passed: number; failed: number }> {
  const { kills, seed, writers = 3, onFailure = () => undefined } = options;
  const rng = rngFrom(seed);
  const scratch = mkdtempSync(join(tmpdir(), "rollbook-crash-"));
  const module = compileStore();
  const tally = { passed: 0, failed: 0 };
  let acknowledged = new Set<string>();
  try {
    for (let round = 0; tally.passed + tally.failed < kills; round++) {
      const book = join(scratch, String(Math.floor(round / ROUNDS_PER_BOOK)));
      if (round % ROUNDS_PER_BOOK === 0) acknowledged = new Set();
      const alive = Array.from({ length: writers }, (_, i) => {
        const args = [WRITER, module.url, book, `${round}-${i}`];
        return killSoon(spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] }), rng);
      });
      for (const digests of await Promise.all(alive)) for (const digest of digests) acknowledged.add(digest);
      const faults = await checkBook(book, acknowledged);
      for (const fault of faults) onFailure(`round ${round}: ${fault}`);
      tally[faults.length === 0 ? "passed" : "failed"] += writers;
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
    rmSync(module.directory, { recursive: true, force: true });
  }
  return tally;
}

/** src/ as JavaScript, under the repository so that packages resolve: starting TypeScript costs 5 times as much. */
export function compileStore(): { url: string; directory: string } {
  mkdirSync(join(REPO, ".cache"), { recursive: true });
  const directory = mkdtempSync(join(REPO, ".cache", "store-"));
  const tsc = join(REPO, "node_modules", "typescript", "bin", "tsc");
  const args = [
    tsc,
    "-p",
    join(REPO, "tsconfig.build.json"),
    "--outDir",
    directory,
    "--declaration",
    "false",
    "--noCheck",
  ];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`tsc: ${stdout}`);
  return { url: pathToFileURL(join(directory, "store", "index.js")).href, directory };
}

/** The roots the writer acknowledged before its end. Half of the kills strike while it starts and recovers. */
async function killSoon(writer: ChildProcess, rng: Rng): Promise<string[]> {
  let output = "";
  const pipe = writer.stdout!.setEncoding("utf8");
  const started = once(pipe, "data");
  pipe.on("data", (text: string) => {
    output += text;
  });
  const [early, delayMs] = [rng.below(2) === 0, rng.below(150)];
  if (!early) await started;
  await sleep(early ? 40 + delayMs : delayMs);
  writer.kill("SIGKILL");
  await once(writer, "close");
  // A line cut off by the kill was not acknowledged to anybody.
  return output.split("\n").slice(0, -1);
}

async function checkBook(root: string, acknowledged: ReadonlySet<string>): Promise<string[]> {
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
    if (item.type === "blob" && item.kind === "test.root.v1")
      roots.set(item.digest, JSON.parse(Buffer.from(item.bytes).toString()).children);
  }
  await book.close();
  for (const digest of acknowledged) if (!roots.has(digest as Digest)) faults.push(`${digest} is lost`);
  for (const [digest, children] of roots)
    for (const child of children)
      if (!seen.has(child)) faults.push(`${digest} names ${child}, which is lost`);
  return faults;
}
