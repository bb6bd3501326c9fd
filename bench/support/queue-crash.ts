/** Kills enqueuers and workers with SIGKILL at random moments, lets others finish, and checks the result.
 *  In: number of kills, seed. Out: number of kills that broke no promise: every item done once, every given receipt
 *  true, every accepted artifact complete in the book. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { type Digest, type Rng, rngFrom, systemClock } from "../../src/base/index.ts";
import { openSqliteQueue } from "../../src/collect/queue/sqlite-queue.ts";
import { openRecord, Receipt, RolloutContent, RolloutEnvelope } from "../../src/contract/index.ts";
import { verifyBook } from "../../src/keep/verify/index.ts";
import { type Book, openBook } from "../../src/store/index.ts";
import { compiledModules } from "./build.ts";
import { endOf, startProcess } from "./store-crash.ts";

export interface QueueCrashOptions {
  readonly kills: number;
  readonly seed: bigint;
  readonly onFailure?: (what: string) => void;
}

const WORKERS = 3;
const ROUNDS_PER_BOOK = 10;
/** New work per round, so that no round finds an empty queue. */
const ASSIGNMENTS_PER_ROUND = 20;
const SAMPLES = 4;

export async function crashQueue(options: QueueCrashOptions): Promise<{ passed: number; failed: number }> {
  const { kills, seed, onFailure = () => undefined } = options;
  const rng = rngFrom(seed);
  const scratch = mkdtempSync(join(tmpdir(), "rollbook-queue-crash-"));
  const modules = pathToFileURL(compiledModules()).href;
  const tally = { passed: 0, failed: 0 };
  try {
    for (let book = 0; tally.passed + tally.failed < kills; book++) {
      const left = Math.ceil((kills - tally.passed - tally.failed) / (WORKERS + 1));
      const rounds = Math.min(ROUNDS_PER_BOOK, left);
      const faults = await liveThrough({ modules, directory: join(scratch, String(book)), rounds, rng });
      for (const fault of faults) onFailure(`book ${book}: ${fault}`);
      tally[faults.length === 0 ? "passed" : "failed"] += rounds * (WORKERS + 1);
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return tally;
}

async function liveThrough(at: {
  modules: string;
  directory: string;
  rounds: number;
  rng: Rng;
}): Promise<string[]> {
  const { modules, directory, rounds, rng } = at;
  await (await openBook(join(directory, "book"), { clock: systemClock })).close();
  const faults: string[] = [];
  const given: string[] = [];
  const note = ({ lines, fault }: { lines: string[]; fault?: string }) => {
    given.push(...lines);
    if (fault !== undefined) faults.push(fault);
  };
  for (let round = 1; round <= rounds; round++) {
    const assignments = String(round * ASSIGNMENTS_PER_ROUND);
    const victims = [startProcess("queue-enqueuer", [modules, directory, assignments])];
    for (let w = 0; w < WORKERS; w++)
      victims.push(startProcess("queue-worker", [modules, directory, `w-${round}-${w}`]));
    const [enqueued, ...worked] = await Promise.all(victims.map((victim) => killSoon(victim, rng)));
    for (const end of [{ ...enqueued!, lines: [] }, ...worked]) note(end);
  }
  const total = rounds * ASSIGNMENTS_PER_ROUND;
  const last = await endOf(startProcess("queue-enqueuer", [modules, directory, String(total)]));
  note({ ...last, lines: [] });
  note(await endOf(startProcess("queue-worker", [modules, directory, "last", "drain"])));
  return [...faults, ...(await checkAll(directory, total * SAMPLES, given))];
}

/** Some processes are killed during their start, most during their work. */
async function killSoon(child: ChildProcess, rng: Rng) {
  const end = endOf(child);
  const [early, delayMs] = [rng.below(4) === 0, rng.below(250)];
  if (!early) await Promise.race([once(child.stdout!, "data"), once(child, "exit"), sleep(2000)]);
  await sleep(delayMs);
  child.kill("SIGKILL");
  return end;
}

/** `given`: lines of item, outcome and envelope, one for every receipt that reached a worker. */
async function checkAll(directory: string, items: number, given: readonly string[]): Promise<string[]> {
  const faults: string[] = [];
  const queue = openSqliteQueue(join(directory, "queue.db"), { clock: systemClock });
  const book = await openBook(join(directory, "book"), { clock: systemClock });
  const counts = await queue.counts();
  if (counts.done !== items || counts.waiting + counts.claimed + counts.dead > 0)
    faults.push(`${JSON.stringify(counts)} instead of ${items} done`);
  const results = new Map<string, Digest>();
  for (const end of await queue.settled(0, items + 1)) {
    if (results.has(end.item)) faults.push(`${end.item} ended twice`);
    if (end.state === "done") results.set(end.item, end.result);
  }
  faults.push(...checkGiven(given, results), ...(await checkKept(book, results)));
  const report = await verifyBook(book);
  for (const problem of report.problems) faults.push(`verify: ${JSON.stringify(problem)}`);
  await queue.close();
  await book.close();
  return faults;
}

/** A receipt that says accepted must be true, and only one worker may get it. */
function checkGiven(given: readonly string[], results: ReadonlyMap<string, Digest>): string[] {
  const faults: string[] = [];
  const accepted = new Set<string>();
  for (const line of given) {
    const [item, outcome, envelope] = line.split(" ") as [string, string, string];
    if (outcome !== "stored") continue;
    if (accepted.has(item)) faults.push(`${item} was accepted twice`);
    accepted.add(item);
    if (results.get(item) !== envelope)
      faults.push(`${item} was accepted as ${envelope}, the queue says ${results.get(item)}`);
  }
  return faults;
}

/** Every result must be in the book and be the artifact of its item. At most one receipt accepts each item. */
async function checkKept(book: Book, results: ReadonlyMap<string, Digest>): Promise<string[]> {
  const faults: string[] = [];
  for (const [item, digest] of results) {
    const blob = await book.get(digest);
    const envelope = blob === undefined ? undefined : openRecord(RolloutEnvelope, blob.bytes);
    const content = envelope === undefined ? undefined : await book.get(envelope.content);
    if (content === undefined) faults.push(`${item}: ${digest} is lost`);
    else if (openRecord(RolloutContent, content.bytes).rolloutId !== item)
      faults.push(`${item}: ${digest} is another rollout's`);
  }
  const accepted = new Set<string>();
  for await (const blob of book.scan()) {
    if (blob.type !== "blob" || blob.kind !== Receipt.kind) continue;
    const { outcome, claim } = openRecord(Receipt, blob.bytes);
    const item = claim!.split(":")[0]!;
    if (outcome !== "stored") continue;
    if (accepted.has(item)) faults.push(`two receipts accept ${item}`);
    accepted.add(item);
  }
  return faults;
}
