/** Kills launchers, workers and optionally their gateway with SIGKILL at random moments, runs the same command again,
 *  and counts. In: number of kills, seed. Out: number of kills that broke no promise. A reported result stays the
 *  result. When the launch is done, every rollout has one accepted, signed artifact in a book that verifies. The
 *  model's replies to the agent are in its calls. The agent uses random numbers of its own process, so a rollout that
 *  ran twice would give two different artifacts. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Digest, type Rng, rngFrom, systemClock } from "../../src/base/index.ts";
import { itemOf } from "../../src/collect/index.ts";
import { isTaken } from "../../src/collect/receipt.ts";
import {
  Attestation,
  Call,
  openRecord,
  Receipt,
  RolloutContent,
  RolloutEnvelope,
} from "../../src/contract/index.ts";
import { verifyBook } from "../../src/keep/verify/index.ts";
import { type Book, openBook } from "../../src/store/index.ts";
import { MAIN, requireBuild } from "./build.ts";
import { openEcho } from "./gateway/echo-upstream.ts";

const [TASKS, SAMPLES] = [15, 4];
const KILLS_PER_BOOK = 10;
/** Runs without a kill that may be needed to finish: a run ends early when an item has used all its attempts. */
const FINISHING_RUNS = 6;
const AGENT = `export default async ({ ms = 60 }, { baseUrl, apiKey }) => {
  await new Promise((next) => setTimeout(next, 5 + Math.random() * ms));
  if (baseUrl === undefined) return Math.random();
  const word = "word-" + Math.random();
  try {
    const response = await fetch(baseUrl + "/chat/completions", {
      method: "POST",
      headers: { authorization: "Bearer " + apiKey, "content-type": "application/json" },
      body: JSON.stringify({ model: "m", messages: [{ role: "user", content: word }] }),
    });
    const { choices } = await response.json();
    return { reward: Math.random(), finalState: choices[0].message.content };
  } catch (error) {
    return { error: { owner: "infrastructure", message: String(error) } };
  }
};
`;

export async function crashLaunches(options: {
  readonly kills: number;
  readonly seed: bigint;
  /** True: record through a gateway, which is killed too. */
  readonly gateway?: boolean;
  readonly onFailure: (what: string) => void;
}): Promise<{ passed: number; failed: number }> {
  requireBuild();
  const rng = rngFrom(options.seed);
  const tally = { passed: 0, failed: 0 };
  while (tally.passed + tally.failed < options.kills) {
    const left = options.kills - tally.passed - tally.failed;
    const kill = Math.min(KILLS_PER_BOOK, left);
    const { kills, faults } = await (options.gateway === true
      ? crashBehindGateway(kill, rng)
      : crashOneBook(kill, rng));
    for (const fault of faults) options.onFailure(fault);
    tally[faults.length === 0 ? "passed" : "failed"] += kills;
  }
  return tally;
}

export interface Scene {
  readonly folder: string;
  /** Gateway arguments of launchers and workers. */
  readonly words: readonly string[];
  /** The queue that launchers and workers share. */
  readonly queue: string;
  /** Number of rollouts of the launch. */
  readonly rollouts: number;
  /** Reported envelopes by rollout. */
  readonly told: Map<string, string>;
  /** Location of the book (default: the folder `book`), and the environment variables to reach it. */
  readonly book?: string;
  readonly env?: Readonly<Record<string, string>>;
}

async function crashBehindGateway(kills: number, rng: Rng): Promise<{ kills: number; faults: string[] }> {
  const upstream = await openEcho();
  try {
    return await crashOneBook(kills, rng, upstream.url);
  } finally {
    upstream.close();
  }
}

async function crashOneBook(
  kills: number,
  rng: Rng,
  upstream?: string,
): Promise<{ kills: number; faults: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-launch-crash-"));
  const faults: string[] = [];
  let gateway: ChildProcess | undefined;
  try {
    const rollouts = writeWork(folder, { tasks: TASKS });
    const port = upstream === undefined ? 0 : await freePort();
    const words = upstream === undefined ? [] : ["--gateway", `http://127.0.0.1:${port}`];
    const scene: Scene = { folder, words, queue: "book/queue.db", rollouts, told: new Map() };
    if (upstream !== undefined) {
      writeConfig(folder, upstream, port);
      await endOf(spawnCli(folder, ["keys", "new"]));
    }
    let struck = 0;
    while (struck < kills) {
      gateway = upstream === undefined ? undefined : startGateway(folder);
      const victims = [startLaunch(scene), startWorker(scene), ...(gateway === undefined ? [] : [gateway])];
      const ends = await Promise.all(victims.map((victim) => killSoon(victim, rng)));
      // Only launcher and worker: a gateway prints its address.
      for (const { lines } of ends.slice(0, 2)) faults.push(...hear(lines, scene.told));
      struck += victims.length;
    }
    gateway = upstream === undefined ? undefined : startGateway(folder);
    faults.push(...(await finish(scene)));
    gateway?.kill("SIGTERM");
    if (gateway !== undefined) await endOf(gateway);
    // Without a finished launch there may be no book to check; that fault is already recorded.
    if (existsSync(join(folder, "book", "book.json"))) faults.push(...(await checkBook(scene)));
    return { kills: struck, faults };
  } finally {
    gateway?.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Writes the agent and its tasks; `ms` is the longest time of a rollout. Returns the number of rollouts. */
export function writeWork(folder: string, { tasks, ms }: { tasks: number; ms?: number }): number {
  writeFileSync(join(folder, "agent.mjs"), AGENT);
  const rows = Array.from({ length: tasks }, (_, i) => `${JSON.stringify({ i, ms })}\n`);
  writeFileSync(join(folder, "tasks.jsonl"), rows.join(""));
  return tasks * SAMPLES;
}

function writeConfig(folder: string, upstream: string, port: number): void {
  const text = `listen: { port: ${port} }\nupstreams: { up: { baseUrl: "${upstream}" } }\ndefaultUpstream: up\n`;
  writeFileSync(join(folder, "gateway.yaml"), text);
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

function startGateway(folder: string): ChildProcess {
  return spawnCli(folder, ["gateway", "--config", "gateway.yaml", "--book", "book"]);
}

/** `machine`: the folder of its cache, if the book is in a bucket. */
export function startLaunch(scene: Scene, machine = "launcher"): ChildProcess {
  const { words, queue } = scene;
  const given = ["--tasks", "tasks.jsonl", "--samples", String(SAMPLES), "--queue", queue, ...words];
  return start(scene, machine, ["launch", ...given]);
}

/** Ends at once with an error if the queue does not exist yet; that is not a fault. */
export function startWorker(scene: Scene, machine = "worker"): ChildProcess {
  const { words, queue } = scene;
  return start(scene, machine, ["worker", "--queue", queue, ...words]);
}

function start(
  { folder, book = "book", env }: Scene,
  machine: string,
  words: readonly string[],
): ChildProcess {
  const work = ["--agent", "agent.mjs", "--concurrency", "4", "--claim-ttl", "2", "--json"];
  return spawnCli(folder, [...words, "--book", book, ...work], { ...env, ...cacheOf(folder, machine) });
}

function cacheOf(folder: string, machine: string): Record<string, string> {
  return { ROLLBOOK_CACHE: join(folder, "cache", machine) };
}

export function spawnCli(
  folder: string,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  return spawn(process.execPath, [MAIN, ...words], {
    cwd: folder,
    env: { ...process.env, ROLLBOOK_HOME: join(folder, "home"), ...env },
    stdio: ["ignore", "pipe", "ignore"],
  });
}

/** One of several gateways of a cluster, with the configuration of all. */
export function startPeer(
  { folder, book = "book", env }: Scene,
  { name, port }: { name: string; port: number },
): ChildProcess {
  const words = ["--config", "gateway.yaml", "--worker", name, "--port", String(port), "--book", book];
  return spawnCli(folder, ["gateway", ...words], { ...env, ...cacheOf(folder, name) });
}

/** Kills at a random moment: from before the first open to well into the work. */
export async function killSoon(
  child: ChildProcess,
  rng: Rng,
  withinMs = 2_000,
): Promise<{ lines: string[] }> {
  const end = endOf(child);
  await Promise.race([sleep(100 + rng.below(withinMs)), end]);
  child.kill("SIGKILL");
  return end;
}

/** The printed lines. A line that the kill cut off does not count as printed. */
export async function endOf(child: ChildProcess): Promise<{ lines: string[]; code: number | null }> {
  let output = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { lines: output.split("\n").slice(0, -1), code };
}

/** Records reported results. A result reported before must not change. */
export function hear(lines: readonly string[], told: Map<string, string>): string[] {
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

export async function finish(scene: Scene): Promise<string[]> {
  const faults: string[] = [];
  for (let run = 0; run < FINISHING_RUNS; run++) {
    const { lines, code } = await endOf(startLaunch(scene));
    faults.push(...hear(lines, scene.told));
    if (code === 0) return faults;
  }
  return [...faults, `the launch was not done after ${FINISHING_RUNS} runs without a kill`];
}

/** `root`: the book on this disk. */
export async function checkBook(
  { folder, told, rollouts }: Scene,
  root = join(folder, "book"),
): Promise<string[]> {
  const book = await openBook(root, { clock: systemClock, mode: "read" });
  try {
    const held = await readBook(book);
    const faults = [...held.faults, ...checkTold(told, held, rollouts)];
    for (const envelope of told.values()) faults.push(...(await checkHeard(book, envelope)));
    const { problems } = await verifyBook(book);
    return [...faults, ...problems.map(({ code, message }) => `${code}: ${message}`)];
  } finally {
    await book.close();
  }
}

interface Held {
  readonly faults: string[];
  /** Signed artifacts: envelope → content. */
  readonly signed: Map<string, string>;
  /** Contents that receipts accept, by item. */
  readonly accepted: Map<string, Set<string>>;
}

async function readBook(book: Book): Promise<Held> {
  const faults: string[] = [];
  const [envelopes, subjects] = [new Map<string, string>(), new Set<string>()];
  const accepted = new Map<string, Set<string>>();
  for await (const item of book.scan()) {
    if (item.type === "damage") faults.push(`the book is damaged: ${item.finding.message}`);
    if (item.type !== "blob") continue;
    if (item.kind === RolloutEnvelope.kind)
      envelopes.set(item.digest, openRecord(RolloutEnvelope, item.bytes).content);
    if (item.kind === Attestation.kind)
      for (const subject of openRecord(Attestation, item.bytes).subjects) subjects.add(subject);
    if (item.kind !== Receipt.kind) continue;
    const { claim, outcome, subject } = openRecord(Receipt, item.bytes);
    const name = itemOf(claim!);
    if (isTaken(outcome)) accepted.set(name, (accepted.get(name) ?? new Set()).add(subject));
  }
  const signed = new Map([...envelopes].filter(([envelope]) => subjects.has(envelope)));
  return { faults, signed, accepted };
}

/** Every rollout was reported, each reported envelope is present and signed, and its content is the accepted one. */
function checkTold(
  told: ReadonlyMap<string, string>,
  { signed, accepted }: Held,
  rollouts: number,
): string[] {
  const faults: string[] = [];
  if (told.size !== rollouts) faults.push(`${told.size} of ${rollouts} rollouts were told`);
  if (accepted.size !== told.size) faults.push(`${accepted.size} were accepted, ${told.size} were told`);
  for (const [item, envelope] of told) {
    const content = signed.get(envelope);
    if (content === undefined) faults.push(`${item} was told and is not in the book, signed`);
    const contents = accepted.get(item) ?? new Set();
    if (contents.size !== 1) faults.push(`${item} was accepted as ${contents.size} artifacts`);
    else if (content !== undefined && !contents.has(content))
      faults.push(`${item}: another one was accepted`);
  }
  return faults;
}

/** The replies that the agent received from a model must be in the calls of its rollout. */
async function checkHeard(book: Book, envelope: string): Promise<string[]> {
  const read = async (digest: string) => (await book.get(digest as Digest))?.bytes;
  const sealed = await read(envelope);
  if (sealed === undefined) return [];
  const { content: digest } = openRecord(RolloutEnvelope, sealed);
  const { calls, finalState, rolloutId } = openRecord(RolloutContent, (await read(digest))!);
  if (finalState === undefined) return [];
  const heard = JSON.parse(Buffer.from((await read(finalState))!).toString()) as string;
  for (const call of calls)
    for (const message of openRecord(Call, (await read(call))!).response.messages)
      if (Buffer.from((await read(message))!).includes(heard)) return [];
  return [`${rolloutId}: ${heard} was delivered and is not recorded`];
}
