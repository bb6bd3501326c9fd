/** Kills writers of a replay store with SIGKILL at random moments and checks the store.
 *  In: number of kills, seed.
 *  Out: number of kills after which the store validates and has every acknowledged commit. */
import { once } from "node:events";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { reasonOf } from "../../src/base/errors.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import {
  appendReplay,
  collectOrphans,
  openReplay,
  validateReplay,
  writeReplay,
} from "../../src/keep/replay/index.ts";
import { fastFolder } from "../../test/support/fast-folder.ts";
import { ReplayWorld } from "../../test/support/replay-world.ts";
import { compiledModules } from "./build.ts";
import { endOf, startProcess } from "./store-crash.ts";

export interface ReplayCrashOptions {
  readonly kills: number;
  readonly seed: bigint;
  readonly onFailure?: (what: string) => void;
}

/** Kills per store; then a new store is begun. Half of all kills meet the first write or come soon after. */
const KILLS_PER_STORE = 4;

export async function crashReplay(options: ReplayCrashOptions): Promise<{ passed: number; failed: number }> {
  const { kills, seed, onFailure = () => undefined } = options;
  const rng = rngFrom(seed).split("replay-crash");
  const scratch = fastFolder("replay-crash");
  const module = pathToFileURL(join(compiledModules(), "keep", "replay", "index.js")).href;
  const world = new ReplayWorld({ seed, steps: 3 });
  world.add(80);
  const worldFile = join(scratch, "world.json");
  const blobs = [...world.blobs].map(([digest, { kind, bytes }]) => [
    digest,
    kind,
    Buffer.from(bytes).toString("base64"),
  ]);
  writeFileSync(worldFile, JSON.stringify({ blobs, rollouts: world.rollouts }));
  const tally = { passed: 0, failed: 0 };
  try {
    for (let kill = 0; kill < kills; kill++) {
      const root = join(scratch, String(Math.floor(kill / KILLS_PER_STORE)));
      const fault = await killOnce({ root, world, args: [module, root, worldFile], rng: rng.split(kill) });
      if (fault !== undefined) onFailure(`kill ${kill}: ${fault}`);
      tally[fault === undefined ? "passed" : "failed"]++;
      if (kill % KILLS_PER_STORE === KILLS_PER_STORE - 1) rmSync(root, { recursive: true, force: true });
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return tally;
}

/** Starts a writer, kills it after a random time, and describes the faults of its store. */
async function killOnce({
  root,
  world,
  args,
  rng,
}: {
  root: string;
  world: ReplayWorld;
  args: readonly string[];
  rng: Rng;
}): Promise<string | undefined> {
  const child = startProcess("replay-writer", args);
  const ending = endOf(child);
  await Promise.race([once(child.stdout!, "data"), sleep(20_000)]);
  await sleep(rng.below(200));
  child.kill("SIGKILL");
  const { lines, fault } = await ending;
  if (fault !== undefined) return fault;
  try {
    return (
      (await checkStore(root, lines)) ?? (await checkRecovery(root, { world, collect: rng.below(2) === 0 }))
    );
  } catch (error) {
    return reasonOf(error);
  }
}

async function checkStore(root: string, lines: readonly string[]): Promise<string | undefined> {
  const [generation = 0, chains = 0] = (lines.at(-1) ?? "").split(" ").map(Number);
  const acknowledged = Number.isNaN(generation) ? 0 : generation;
  if (!existsSync(join(root, "manifest.json")))
    return acknowledged === 0 ? undefined : `commit ${acknowledged} was acknowledged, and there is no store`;
  const { count, errors } = await validateReplay(root);
  if (count > 0) return `${count} errors, the first ${JSON.stringify(errors[0])}`;
  const store = await openReplay(root);
  store.close();
  if (store.manifest.generation < acknowledged || (acknowledged > 0 && store.rows("chains") < chains))
    return `commit ${acknowledged} with ${chains} chains was acknowledged, the store is at ${store.manifest.generation}`;
  return undefined;
}

/** The store stays usable: orphans can be collected, rollouts added, and it still validates. */
async function checkRecovery(
  root: string,
  { world, collect }: { world: ReplayWorld; collect: boolean },
): Promise<string | undefined> {
  if (!existsSync(root)) return undefined;
  if (collect && existsSync(join(root, "zarr.json"))) await collectOrphans(root);
  const write = existsSync(join(root, "manifest.json")) ? appendReplay : writeReplay;
  await write({
    root,
    read: world.read,
    rollouts: world.rollouts.slice(0, 2),
    clock: systemClock,
    durable: false,
  });
  const { count, errors } = await validateReplay(root);
  return count === 0 ? undefined : `after recovery ${count} errors, the first ${JSON.stringify(errors[0])}`;
}
