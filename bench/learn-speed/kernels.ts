/** The kernels: the matrix product compared with the multiply-add peak of WebAssembly SIMD, and training steps of a
 *  network compared with the same network in plain JavaScript and in jax-js. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { rngFrom } from "../../src/base/rng.ts";
import { adamW, makeMlp, openTensors, uniformStart } from "../../src/learn/tensor/index.ts";
import { median } from "../support/interleave.ts";
import { plainStep } from "../support/plain-mlp.ts";

const ROUNDS = 7;
const SHAPE = { inputs: 64, hidden: [128, 128], outputs: 8, activation: "relu" as const };
const BATCH = 256;
const JAX = "@jax-js/jax@0.1.25";

type Row = Record<string, string | number>;

export function productSpeed(): Row[] {
  const space = openTensors();
  const [m, n, k] = [256, 128, 128];
  const [a, b, c] = [space.floats(m * k), space.floats(k * n), space.floats(m * n)];
  for (const block of [a, b]) space.view(block).set(ramp(block.length));
  const peak = compilePeak();
  const product = () => space.kernels.product(a.at, k, 1, b.at, 0, c.at, 0, m, n, k, 0);
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    ours.push(perSecond(product, 200) * 2 * m * n * k);
    theirs.push(perSecond(() => peak(100_000), 20) * 100_000 * 13 * 8);
  }
  const [mine, most] = [median(ours) / 1e9, median(theirs) / 1e9];
  return [
    {
      ...{ what: "matrix product 256×128×128", "GFLOP/s": mine, "SIMD peak": most, "× peak": mine / most },
      bar: "≥ 0.65",
    },
  ];
}

/** Steps per second of forward, backward and Adam on minibatches of 256 rows. */
export async function mlpSpeed(): Promise<Row[]> {
  const ours = ourStep();
  const plain = plainStep(SHAPE, BATCH);
  const jax = await jaxStep();
  const figures: Record<"ours" | "plain" | "jax", number[]> = { ours: [], plain: [], jax: [] };
  for (let round = 0; round < 5; round++) {
    figures.ours.push(perSecond(ours, 100));
    figures.plain.push(perSecond(plain, 8));
    if (jax !== undefined) figures.jax.push(await perSecondAsync(jax, 20));
  }
  const [mine, theirs] = [median(figures.ours), median(figures.plain)];
  const other = jax === undefined ? "not installed" : mine / median(figures.jax);
  return [
    {
      ...{ what: "MLP 64-128-128-8, batch 256", "steps/s": mine, "× plain JavaScript": mine / theirs },
      ...{ "× jax-js": other, bar: "≥ 8, ≥ 2.5" },
    },
  ];
}

function ourStep(): () => void {
  const space = openTensors();
  const net = makeMlp(space, SHAPE, BATCH);
  uniformStart(SHAPE, space.view(net.parameters), rngFrom(1));
  const adam = adamW(space);
  const state = adam.init(net.parameters);
  const [input, slope] = [space.floats(BATCH * 64), space.floats(BATCH * 8)];
  space.view(input).set(ramp(input.length));
  return () => {
    const out = space.view(net.forward(input, BATCH));
    const d = space.view(slope);
    for (let i = 0; i < d.length; i++) d[i] = (out[i]! - 0.1) / BATCH;
    net.backward(slope);
    adam.update(net.parameters, net.gradient, state, 1e-3);
  };
}

function ramp(length: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => ((i * 7) % 31) / 31 - 0.5);
}

function perSecond(step: () => unknown, count: number): number {
  step();
  const start = process.cpuUsage();
  for (let i = 0; i < count; i++) step();
  const { user, system } = process.cpuUsage(start);
  return (count * 1e6) / (user + system);
}

async function perSecondAsync(step: () => Promise<unknown>, count: number): Promise<number> {
  await step();
  const start = process.cpuUsage();
  for (let i = 0; i < count; i++) await step();
  const { user, system } = process.cpuUsage(start);
  return (count * 1e6) / (user + system);
}

function compilePeak(): (rounds: number) => number {
  const folder = mkdtempSync(join(tmpdir(), "peak-"));
  try {
    const out = join(folder, "peak.wasm");
    const asc = resolve("node_modules/assemblyscript/bin/asc.js");
    const flags = ["-O3", "--enable", "simd", "--runtime", "stub", "--noAssert"];
    execFileSync(process.execPath, [asc, "kernels/bench/peak.ts", "--outFile", out, ...flags]);
    const { Module, Instance } = (globalThis as unknown as { WebAssembly: WasmApi }).WebAssembly;
    return new Instance(new Module(readFileSync(out))).exports.peak;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface WasmApi {
  Module: new (code: Uint8Array) => object;
  Instance: new (module: object) => { exports: { peak(rounds: number): number } };
}

/** The same step in jax-js, installed in its own folder; undefined if the registry cannot be reached. */
async function jaxStep(): Promise<(() => Promise<unknown>) | undefined> {
  const folder = resolve(".cache/jax-js");
  const entry = join(folder, "node_modules/@jax-js/jax/dist/index.js");
  if (!existsSync(entry)) {
    mkdirSync(folder, { recursive: true });
    try {
      execFileSync("npm", ["install", "--no-save", "--ignore-scripts", "--prefix", folder, JAX], {
        stdio: "ignore",
      });
    } catch {
      return undefined;
    }
  }
  const { jaxTrainingStep } = await import("../support/jax-step.ts");
  return jaxTrainingStep(pathToFileURL(entry).href, { ...SHAPE, batch: BATCH });
}
