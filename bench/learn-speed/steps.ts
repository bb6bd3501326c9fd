/** Gradient steps of CQL and environment steps of PPO per second, compared with Python's libraries, one thread each, by
 *  CPU time. Rounds are interleaved, so that drift of the machine affects all equally. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { digestJson } from "../../src/base/digest.ts";
import { rngFrom } from "../../src/base/rng.ts";
import { trainPpo } from "../../src/learn/index.ts";
import { CART_POLE_SPEC, makeCartPole } from "../../src/learn/neural/cart-pole.ts";
import { bestValue, CQL_DEFAULTS, makeQLearner } from "../../src/learn/neural/cql.ts";
import { standardise } from "../../src/learn/neural/dense-batch.ts";
import type { PreparedRows } from "../../src/learn/neural/setup.ts";
import { runNow } from "../../src/learn/neural/work.ts";
import { makeMlp, openTensors } from "../../src/learn/tensor/index.ts";
import { median } from "../support/interleave.ts";
import { PythonPeer } from "../support/python-peer.ts";

const FOLDER = ".cache/learn-peers";
const PEERS = ["d3rlpy==2.8.1"];
/** Installed separately, because it needs newer dependencies than d3rlpy pins. */
const ALONE = ["stable-baselines3==2.9.2"];
const ROUNDS = 3;
const SECONDS = 1;

type Row = Record<string, string | number>;

export async function cqlSpeed(): Promise<Row[]> {
  const peer = new PythonPeer(installedPython(), fileURLToPath(new URL("peers.py", import.meta.url)));
  try {
    const rows: Row[] = [];
    for (const [inputs, outputs] of [
      [4, 2],
      [64, 8],
    ] as const)
      for (const batch of [32, 256]) rows.push(await cqlRow(peer, { batch, inputs, outputs }));
    return rows;
  } finally {
    peer.close();
  }
}

async function cqlRow(
  peer: PythonPeer,
  { batch, inputs, outputs }: { batch: number; inputs: number; outputs: number },
): Promise<Row> {
  const step = cqlStep(batch, inputs, outputs);
  const names = ["cql_d3rlpy", "cql_torch", "cql_manual"] as const;
  const figures: Record<string, number[]> = { ours: [] };
  for (let round = 0; round < ROUNDS; round++) {
    figures.ours!.push(perCpuSecond(step, SECONDS));
    for (const name of names) {
      figures[name] ??= [];
      figures[name].push(await peer.call<number>(name, batch, inputs, outputs, SECONDS));
    }
  }
  const [mine, d3rlpy, autograd, manual] = ["ours", ...names].map((name) => median(figures[name]!)) as [
    ...[number, number, number, number],
  ];
  return {
    ...{ what: `CQL 256-256, batch ${batch}, ${inputs}→${outputs}`, "steps/s": mine },
    ...{ "× d3rlpy": mine / d3rlpy, "× torch autograd": mine / autograd, "× torch by hand": mine / manual },
    bar: batch === 32 ? "≥ 3, ≥ 1" : "≥ 1.5",
  };
}

/** One step of trainCql's learner on random transitions. */
function cqlStep(batch: number, inputs: number, outputs: number): () => void {
  const rng = rngFrom(1);
  const count = 4096;
  const sparse = {
    start: Int32Array.from({ length: count + 1 }, (_, r) => r * inputs),
    indices: Int32Array.from({ length: count * inputs }, (_, e) => e % inputs),
    values: Float64Array.from({ length: count * inputs }, () => rng.float() - 0.5),
    size: inputs,
  };
  const rows = Int32Array.from({ length: count }, (_, r) => r);
  const data = {
    ...{ count, unit: rows, units: [], unlabelled: 0 },
    states: { size: inputs, block: (asked: Int32Array) => ({ sparse, places: asked }) },
    arms: Array.from({ length: outputs }, (_, a) => `arm-${a}`),
    action: rows.map(() => rng.below(outputs)),
    reward: Float32Array.from(rows, () => rng.float()),
    next: rows.map((r) => (r % 64 === 63 ? -1 : r + 1)),
    ...{ allowed: new Int32Array(count), patterns: [new Float32Array(outputs).fill(1)] },
  };
  const by = runNow(standardise(data, rows));
  const account = { rows: count, trained: count, heldOut: 0, unlabelled: 0, cut: 0 };
  const prepared: PreparedRows = { data, train: rows, held: rows.slice(0, 0), by, account };
  const space = openTensors();
  const shape = { inputs, hidden: [256, 256], outputs, activation: "relu" as const };
  const net = makeMlp(space, shape, 256);
  const options = { ...CQL_DEFAULTS, batch, discount: 0.99, rate: 6.25e-5 };
  const learner = makeQLearner(space, { net, prepared, rng, options, target: bestValue });
  let at = 0;
  return () => void runNow(learner.step(at++));
}

export async function ppoSpeed(): Promise<Row[]> {
  const peer = new PythonPeer(installedPython(), fileURLToPath(new URL("peers.py", import.meta.url)));
  try {
    const world = { make: () => makeCartPole(), spec: CART_POLE_SPEC, digest: digestJson("bench.v1", 1) };
    const [ours, theirs]: [number[], number[]] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      const start = process.cpuUsage();
      trainPpo(world, { steps: 100_000 }, rngFrom(round));
      ours.push(100_000 / cpuSeconds(start));
      theirs.push(await peer.call<number>("ppo_sb3", 20_480));
    }
    const [mine, other] = [median(ours), median(theirs)];
    return [
      {
        ...{ what: "PPO on CartPole at defaults; the peer with the settings of its zoo", "steps/s": mine },
        ...{ "stable-baselines3": other, "× stable-baselines3": mine / other, bar: "≥ 4" },
      },
    ];
  } finally {
    peer.close();
  }
}

function perCpuSecond(step: () => void, seconds: number): number {
  for (let i = 0; i < 10; i++) step();
  const start = process.cpuUsage();
  let count = 0;
  for (; cpuSeconds(start) < seconds; count++) step();
  return count / cpuSeconds(start);
}

function cpuSeconds(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

/** The peers in their own Python environment: about 5.5 GB, installed once. */
function installedPython(): string {
  const python = `${FOLDER}/bin/python`;
  if (existsSync(`${FOLDER}/installed`)) return python;
  execFileSync("python3", ["-m", "venv", FOLDER]);
  const pip = (...words: string[]) =>
    execFileSync(python, ["-m", "pip", "install", "-q", ...words], { stdio: "inherit" });
  pip(...PEERS);
  pip("--no-deps", ...ALONE);
  pip("cloudpickle", "pandas", "matplotlib");
  execFileSync("touch", [`${FOLDER}/installed`]);
  return python;
}
