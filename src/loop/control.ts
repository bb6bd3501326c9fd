/** Controls the process that runs a loop, and the request to stop it.
 *  In: a book, the name of a run. Out: a lock, a file with the state of the process, and a request to stop. The
 *  operating system releases the lock however its holder ends. All files are operational: they never enter a record. */
import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isObject, RollbookError } from "../base/index.ts";
import { copyOf } from "../book/open/index.ts";
import { makeDirectory, tryLock } from "../store/index.ts";
import type { LoopConfig } from "./config.ts";

/** Current activity of the running process. */
interface LoopActivity {
  readonly pid: number;
  readonly window: number;
  readonly state: string;
  readonly done: number;
  readonly total: number;
}

export type Tell = (activity: Omit<LoopActivity, "pid">) => void;

const LOOK_MS = 200;

export function loopFolder(root: string, run: string): string {
  return join(root, "loop", run);
}

const lockFile = (root: string, run: string) => join(loopFolder(root, run), "lock");
const stopFile = (root: string, run: string) => join(loopFolder(root, run), "stop");
const activityFile = (root: string, run: string) => join(loopFolder(root, run), "activity.json");

const startsFile = (root: string, run: string) => join(loopFolder(root, run), "starts");

const settingsFile = (root: string, run: string) => join(loopFolder(root, run), "settings.json");

type Settings = Readonly<Record<string, unknown>>;

/** Stores the settings at the start of a run. Its records only have their digest. */
export function noteSettings({ root, run }: { root: string; run: string }, settings: Settings): void {
  writeFileSync(settingsFile(root, run), JSON.stringify(settings), { mode: 0o600 });
}

/** Stores the time at which a process begins to work on the run. */
export function noteStart({ root, run }: { root: string; run: string }, atMs: number): void {
  appendFileSync(startsFile(root, run), `${atMs}\n`, { mode: 0o600 });
}

/** Times at which processes began to work on the run; empty if they are not stored here. */
export function startsOf({ root, run }: { root: string; run: string }): number[] {
  const file = startsFile(root, run);
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8").trim().split("\n").map(Number);
}

/** Keys that have changed since the run began; empty if its settings are not stored here. */
export function changedSettings({ root, run }: { root: string; run: string }, settings: Settings): string[] {
  const file = settingsFile(root, run);
  if (!existsSync(file)) return [];
  return differing(JSON.parse(readFileSync(file, "utf8")) as Settings, settings);
}

function differing(before: Settings, now: Settings): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(now)])].flatMap((key) => {
    const [a, b] = [before[key], now[key]];
    if (isObject(a) && isObject(b)) return differing(a, b).map((inner) => `${key}.${inner}`);
    return JSON.stringify(a) === JSON.stringify(b) ? [] : [key];
  });
}

/** `options`: those of the commands that continue or stop the run. */
type NamedRun = Pick<LoopConfig, "run" | "options">;

/** Runs `work` as the only process of this run. Its signal is aborted when a stop of the run is requested. */
export async function holdRun<T>(
  { root, signal, ...choice }: NamedRun & { root: string; signal?: AbortSignal | undefined },
  work: (stop: AbortSignal, tell: Tell) => Promise<T>,
): Promise<T> {
  const { run } = choice;
  // Checkpoints and exported batches hold the same data as packs, which only the owner may read.
  makeDirectory(loopFolder(root, run), { mode: 0o700 });
  const lock = tryLock(lockFile(root, run)) ?? refuseSecond(root, choice);
  const asked = new AbortController();
  rmSync(stopFile(root, run), { force: true });
  const timer = setInterval(() => {
    if (existsSync(stopFile(root, run))) asked.abort();
  }, LOOK_MS);
  timer.unref();
  const stop = signal === undefined ? asked.signal : AbortSignal.any([asked.signal, signal]);
  const told = openSync(activityFile(root, run), "w");
  try {
    return await work(stop, (activity) => tell(told, activity));
  } finally {
    clearInterval(timer);
    closeSync(told);
    for (const file of [stopFile, activityFile]) rmSync(file(root, run), { force: true });
    lock.release();
  }
}

/** Throws if a process runs this run. */
export function requireIdle(root: string, choice: NamedRun): void {
  if (isRunning(root, choice.run)) refuseSecond(root, choice);
}

function refuseSecond(root: string, { run, options }: NamedRun): never {
  const { pid } = activityOf(root, run) ?? {};
  throw new RollbookError(
    "run-busy",
    { root, run, pid },
    `the run ${run} is already active in another process${pid === undefined ? "" : ` (${pid})`}. Wait for it, or ask it to stop with \`rollbook run stop ${options}\`.`,
  );
}

/** Fixed length of the activity file, longer than any activity. */
const ACTIVITY_BYTES = 256;

/** Not synced, because losing the activity loses no data. Overwritten in place: a file that is truncated and filled
 *  again is flushed when it is closed. Rollouts would then wait for the disk five times a second. */
function tell(file: number, activity: Omit<LoopActivity, "pid">): void {
  writeSync(file, JSON.stringify({ pid: process.pid, ...activity }).padEnd(ACTIVITY_BYTES), 0);
}

export function isRunning(root: string, run: string): boolean {
  if (!existsSync(lockFile(root, run))) return false;
  const lock = tryLock(lockFile(root, run));
  lock?.release();
  return lock === undefined;
}

/** Undefined if no process runs, or if it has not reported yet. */
export function activityOf(root: string, run: string): LoopActivity | undefined {
  try {
    return JSON.parse(readFileSync(activityFile(root, run), "utf8")) as LoopActivity;
  } catch {
    return undefined; // missing, or being written now: the next look finds it
  }
}

/** Asks the process to stop and waits until it has stopped. Returns false if no process was running. */
export async function stopRun(
  book: string,
  run: string,
  { timeoutMs }: { timeoutMs: number },
): Promise<boolean> {
  const root = copyOf(book);
  if (!isRunning(root, run)) return false;
  writeFileSync(stopFile(root, run), "");
  for (let waitedMs = 0; waitedMs < timeoutMs; waitedMs += LOOK_MS) {
    if (!isRunning(root, run)) return true;
    await sleep(LOOK_MS);
  }
  throw new RollbookError(
    "run-busy",
    { root, run, timeoutMs },
    `the run ${run} has not stopped within ${timeoutMs / 1000} s. It stops when its stage is done; ask again, or raise --timeout.`,
  );
}
