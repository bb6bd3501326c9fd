/** Small signed run packs: of a suite with two arms, of an ablation of that suite, and of a loop of two windows. */
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Digest } from "../../src/base/index.ts";
import { writeTasks } from "../../src/collect/sim/prove/task-files.ts";
import { signerFromPem } from "../../src/contract/index.ts";
import { ablate, parseSuite, runSuite } from "../../src/loop/bench/index.ts";
import { parseLoopConfig, runLoop } from "../../src/loop/index.ts";
import { sealAblationPack, sealBenchPack, sealLoopPack } from "../../src/loop/pack/index.ts";
import { makeDirectory } from "../../src/store/index.ts";
import { handTasks } from "../../test/support/sim-tasks.ts";

export const SUITE = `suite: small
tasks: { folder: tasks }
train: { decisions: 60 }
repetitions: 2
arms:
  - { name: linucb, learner: { kind: linucb } }
  - { name: ucb, learner: { kind: ucb } }
`;

const LOOP = `run: small
book: work
world: { kind: simulator, tasks: tasks }
windows: 2
rollouts: 12
samples: 2
learner: { kind: ucb }
split: { unit: decision, shares: [0.5, 0, 0.5] }
`;

export async function benchPack(folder: string): Promise<string> {
  makeDirectory(folder);
  writeTasks(join(folder, "tasks"), handTasks(8));
  const suite = parseSuite(SUITE, "suite.yaml", folder);
  const pack = join(folder, "pack");
  await runSuite(suite, { folder: pack, source: SUITE });
  sealBenchPack(pack, suite, { signer: newSigner() });
  return pack;
}

export async function ablationPack(folder: string): Promise<string> {
  makeDirectory(folder);
  writeTasks(join(folder, "tasks"), handTasks(8));
  const suite = parseSuite(SUITE, "suite.yaml", folder);
  const pack = join(folder, "pack");
  const varied = { decisions: [30, 60], floors: [0, 0.5], costWeights: [1, 0], latencyWeights: [1] };
  await ablate(suite, varied, { folder: pack, source: SUITE });
  sealAblationPack(pack, suite, { varied, signer: newSigner() });
  return pack;
}

/** `more`: lines of the configuration.
 *  `digest`: the digest that the run records of it, as an earlier version may have. */
export async function loopPack(
  folder: string,
  { more = "", digest }: { more?: string; digest?: Digest } = {},
): Promise<string> {
  makeDirectory(folder);
  writeTasks(join(folder, "tasks"), handTasks(8));
  const file = join(folder, "loop.yaml");
  writeFileSync(file, LOOP + more);
  const signer = newSigner();
  const config = parseLoopConfig(LOOP + more, file, folder);
  await runLoop({
    config: digest === undefined ? config : { ...config, digest },
    book: config.book!,
    how: "repeat",
    identity: () => ({ signer, trusts: () => true }),
  });
  const pack = join(folder, "pack");
  await sealLoopPack(file, { out: pack, signer });
  return pack;
}

function newSigner() {
  const { privateKey } = generateKeyPairSync("ed25519");
  return signerFromPem(privateKey.export({ type: "pkcs8", format: "pem" }) as string);
}
