/** The WebAssembly kernels and their memory. In: nothing. Out: a workspace: float32 blocks and the functions on them,
 *  by address. The module is compiled once per process. Every workspace has its own memory, freed with the workspace.
 *  Results have the same bits on every engine:
 *  plain SIMD, fixed order of sums, own exp and log (kernels/ is the source). */
import { readFileSync } from "node:fs";
import { RollbookError } from "../../base/index.ts";

/** A run of float32 values in a workspace: its address in bytes, and its number of values. */
export interface Floats {
  readonly at: number;
  readonly length: number;
}

/** The exports of kernels/index.ts. Addresses are in bytes. */
interface Kernels {
  product(
    ...args: [
      ...[a: number, rowStep: number, colStep: number, b: number, bias: number, c: number],
      ...[firstRow: number, lastRow: number, n: number, k: number, activation: number],
    ]
  ): void;
  productTransposed(
    ...args: [
      ...[a: number, b: number, c: number, firstRow: number, lastRow: number],
      ...[n: number, k: number, gate: number, activation: number],
    ]
  ): void;
  columnSums(x: number, out: number, m: number, n: number): void;
  tanh(x: number, count: number): void;
  softmaxRows(x: number, mask: number, out: number, logSumExp: number, m: number, n: number): void;
  huber(delta: number, count: number): number;
  rmsNorm(
    ...args: [x: number, gain: number, y: number, inverse: number, m: number, n: number, eps: number]
  ): void;
  rmsNormBackward(
    ...args: [
      ...[x: number, gain: number, inverse: number, dy: number, dx: number, dgain: number],
      ...[m: number, n: number],
    ]
  ): void;
  adamW(
    ...args: [
      ...[weights: number, gradient: number, mean: number, square: number, count: number, rate: number],
      ...[beta1: number, beta2: number, correct1: number, correct2: number, epsilon: number, decay: number],
    ]
  ): void;
  squaredNorm(x: number, count: number): number;
  scale(x: number, count: number, factor: number): void;
  follow(target: number, online: number, count: number, tau: number): void;
}

export interface TensorSpace {
  readonly kernels: Kernels;
  /** A new block of zeros, its length rounded up to a multiple of 4. */
  floats(length: number): Floats;
  /** Valid until the next call of `floats`: the memory may move when it grows. */
  view(block: Floats): Float32Array;
}

/** The smallest multiple of `step` that is at least `count`. */
export function padded(count: number, step: number): number {
  return Math.ceil(count / step) * step;
}

export function openTensors(): TensorSpace {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: MOST_PAGES });
  const { exports: kernels } = new WebAssembly.Instance(compiled(), { env: { memory } });
  let end = LINE_BYTES;
  return {
    kernels,
    floats(length) {
      const count = padded(length, 4);
      const at = end;
      end = padded(at + 4 * count, LINE_BYTES);
      const missing = end - memory.buffer.byteLength;
      if (missing > 0) grow(memory, Math.ceil(missing / PAGE_BYTES));
      return { at, length: count };
    },
    view: ({ at, length }) => new Float32Array(memory.buffer, at, length),
  };
}

const PAGE_BYTES = 65_536;
const LINE_BYTES = 64;
/** 2 GiB: addresses stay below the sign bit. */
const MOST_PAGES = 32_768;

interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/** The types of Node declare WebAssembly only together with the types of the browser. */
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: {
    Memory: new (options: { initial: number; maximum: number }) => Memory;
    Module: new (code: Uint8Array) => object;
    Instance: new (module: object, imports: object) => { exports: Kernels };
  };
};

let module: object | undefined;

function compiled(): object {
  module ??= new WebAssembly.Module(readFileSync(new URL("./kernels.wasm", import.meta.url)));
  return module;
}

function grow(memory: Memory, pages: number): void {
  try {
    memory.grow(pages);
  } catch (cause) {
    throw new RollbookError(
      "out-of-memory",
      { pages },
      `the kernels' memory cannot grow by ${pages} pages of 64 KiB. Use a smaller network or smaller minibatches.`,
      { cause },
    );
  }
}
