import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { trainedDigest } from "../../../test/support/tensor-digest.ts";
import { exp, log, rngFrom } from "../../base/index.ts";
import {
  adamW,
  clipNorm,
  type Floats,
  follow,
  makeMlp,
  namedParameters,
  openTensors,
  orthogonalStart,
  padded,
  uniformStart,
} from "./index.ts";

const space = openTensors();

function filled(values: readonly number[] | Float32Array): Floats {
  const block = space.floats(values.length);
  space.view(block).set(values);
  return block;
}

function noise(count: number, seed: number, scale = 1): number[] {
  const rng = rngFrom(seed);
  return Array.from({ length: count }, () => Math.fround((2 * rng.float() - 1) * scale));
}

describe("the kernels", () => {
  test("are built from kernels/, byte for byte", () => {
    const folder = mkdtempSync(join(tmpdir(), "kernels-"));
    try {
      const out = join(folder, "kernels.wasm");
      execFileSync(process.execPath, ["scripts/build-kernels.mjs", "--out", out]);
      expect(readFileSync(out).equals(readFileSync("src/learn/tensor/kernels.wasm"))).toBe(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("a product of any shape is the sum it stands for, bias and relu included", () => {
    const size = fc.integer({ min: 1, max: 40 });
    fc.assert(
      fc.property(size, size, size, fc.boolean(), fc.boolean(), (rows, deep, columns, relu, flipped) => {
        const [m, n] = [padded(rows, 4), padded(columns, 8)];
        const [a, b, bias] = [noise(m * deep, 1), noise(deep * n, 2), noise(n, 3)];
        const [steps, c] = [flipped ? [1, m] : [deep, 1], space.floats(m * n)];
        const blocks = [filled(a), filled(b), filled(bias)] as const;
        space.kernels.product(
          ...([blocks[0].at, steps[0]!, steps[1]!, blocks[1].at, blocks[2].at, c.at] as const),
          ...([0, m, n, deep, relu ? 1 : 0] as const),
        );
        const out = space.view(c);
        for (let i = 0; i < m; i++)
          for (let j = 0; j < n; j++) {
            let sum = bias[j]!;
            for (let p = 0; p < deep; p++) sum += a[i * steps[0]! + p * steps[1]!]! * b[p * n + j]!;
            expect(out[i * n + j]).toBeCloseTo(relu ? Math.max(0, sum) : sum, 4);
          }
      }),
      { numRuns: 30 },
    );
  });

  test("a product in parts has the bits of the whole: rows may be shared out among threads", () => {
    const [m, n, k] = [24, 16, 33];
    const [a, b] = [filled(noise(m * k, 4)), filled(noise(k * n, 5))];
    const [whole, parts] = [space.floats(m * n), space.floats(m * n)];
    space.kernels.product(a.at, k, 1, b.at, 0, whole.at, 0, m, n, k, 0);
    for (const [from, to] of [
      [12, 24],
      [0, 4],
      [4, 12],
    ] as const)
      space.kernels.product(a.at, k, 1, b.at, 0, parts.at, from, to, n, k, 0);
    expect([...space.view(parts)]).toEqual([...space.view(whole)]);
  });

  test("softmax and log-sum-exp leave masked places out and do not overflow", () => {
    const x = filled([1000, 999, 5, 0, 0, 0, 0, 0, -1, 2, 0.5, 7, 0, 0, 0, 0]);
    const mask = filled([1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0]);
    const [out, sums] = [space.floats(16), space.floats(4)];
    space.kernels.softmaxRows(x.at, mask.at, out.at, sums.at, 2, 8);
    const [p, lse] = [space.view(out), space.view(sums)];
    expect(p[0]).toBeCloseTo(1 / (1 + exp(-1)), 6);
    expect([p[2], p[3], p[11]]).toEqual([0, 0, 0]);
    expect(lse[0]).toBeCloseTo(1000 + log(1 + exp(-1)), 3);
    expect(lse[1]).toBeCloseTo(log(exp(-1) + exp(2) + exp(0.5)), 6);
  });

  test("tanh is within 2e-7 of the true value", () => {
    const x = Array.from({ length: 4000 }, (_, i) => Math.fround((i - 2000) / 200));
    const block = filled(x);
    space.kernels.tanh(block.at, x.length);
    space.view(block).forEach((y, i) => {
      const grown = exp(2 * x[i]!);
      expect(Math.abs(y - (grown - 1) / (grown + 1))).toBeLessThan(2e-7);
    });
  });

  test("Huber's slope is its finite difference", () => {
    const at = [-3, -1.001, -0.4, 0, 0.7, 0.999, 1.5, 9];
    const loss = (x: readonly number[]) => space.kernels.huber(filled(x).at, x.length);
    const slopes = filled(at);
    space.kernels.huber(slopes.at, at.length);
    at.forEach((x, i) => {
      expect(space.view(slopes)[i]).toBeCloseTo((loss([x + 1e-3]) - loss([x - 1e-3])) / 2e-3, 2);
    });
  });

  test("RMSNorm's backward pass is its finite difference", () => {
    const [m, n] = [3, 8];
    const [x, gain, weight] = [noise(m * n, 6), noise(n, 7), noise(m * n, 8)];
    const loss = (of: readonly number[], g: readonly number[]): number => {
      const [y, inverse] = [space.floats(m * n), space.floats(m)];
      space.kernels.rmsNorm(filled(of).at, filled(g).at, y.at, inverse.at, m, n, 1e-5);
      return space.view(y).reduce((sum, each, i) => sum + each * weight[i]!, 0);
    };
    const [y, inverse, dx, dgain] = [m * n, m, m * n, n].map((size) => space.floats(size)) as Floats[];
    const [bx, bg, bw] = [filled(x), filled(gain), filled(weight)];
    space.kernels.rmsNorm(bx.at, bg.at, y!.at, inverse!.at, m, n, 1e-5);
    space.kernels.rmsNormBackward(bx.at, bg.at, inverse!.at, bw.at, dx!.at, dgain!.at, m, n);
    const nudged = (of: readonly number[], i: number, by: number) => of.with(i, of[i]! + by);
    for (let i = 0; i < m * n; i++)
      expect(space.view(dx!)[i]).toBeCloseTo(
        (loss(nudged(x, i, 1e-2), gain) - loss(nudged(x, i, -1e-2), gain)) / 2e-2,
        2,
      );
    for (let i = 0; i < n; i++)
      expect(space.view(dgain!)[i]).toBeCloseTo(
        (loss(x, nudged(gain, i, 1e-2)) - loss(x, nudged(gain, i, -1e-2))) / 2e-2,
        3,
      );
  });
});

describe("the network", () => {
  for (const activation of ["relu", "tanh"] as const)
    test(`its backward pass with ${activation} is the finite difference of the loss`, () => {
      const shape = { inputs: 3, hidden: [10, 6], outputs: 2, activation };
      const rows = 5;
      const net = makeMlp(space, shape, rows);
      uniformStart(shape, space.view(net.parameters), rngFrom(9));
      const input = space.floats(8 * net.inputWidth);
      const target = noise(rows * net.outputWidth, 11);
      for (let r = 0; r < rows; r++) space.view(input).set(noise(3, 20 + r), r * net.inputWidth);
      const slope = space.floats(8 * net.outputWidth);
      const loss = (): number => {
        const out = space.view(net.forward(input, rows));
        let sum = 0;
        for (let r = 0; r < rows; r++)
          for (let o = 0; o < 2; o++) sum += out[r * net.outputWidth + o]! * target[r * net.outputWidth + o]!;
        return sum;
      };
      loss();
      for (let r = 0; r < rows; r++)
        for (let o = 0; o < 2; o++)
          space.view(slope)[r * net.outputWidth + o] = target[r * net.outputWidth + o]!;
      net.backward(slope);
      const gradient = space.view(net.gradient).slice();
      const values = space.view(net.parameters);
      for (let i = 0; i < values.length; i++) {
        const before = values[i]!;
        values[i] = before + 2e-3;
        const up = loss();
        values[i] = before - 2e-3;
        const down = loss();
        values[i] = before;
        // Padding must have gradient 0, so that it stays zero.
        expect(Math.abs(gradient[i]! - (up - down) / 4e-3), `parameter ${i}`).toBeLessThan(2e-3);
      }
    });

  test("an orthogonal start has orthogonal columns of the stated length", () => {
    const shape = { inputs: 12, hidden: [8], outputs: 2, activation: "tanh" as const };
    const net = makeMlp(space, shape, 4);
    orthogonalStart(shape, space.view(net.parameters), rngFrom(3), 0.01);
    const { w0, w1 } = namedParameters(shape, space.view(net.parameters));
    const column = (t: typeof w0, width: number, o: number) =>
      Array.from({ length: t!.data.length / width }, (_, i) => t!.data[i * width + o]!);
    const dot = (a: number[], b: number[]) => a.reduce((sum, each, i) => sum + each * b[i]!, 0);
    expect(dot(column(w0, 8, 0), column(w0, 8, 0))).toBeCloseTo(2, 5);
    expect(dot(column(w0, 8, 1), column(w0, 8, 5))).toBeCloseTo(0, 5);
    expect(dot(column(w1, 2, 1), column(w1, 2, 1))).toBeCloseTo(1e-4, 8);
  });

  test("the same seed gives the same weights as on every other engine", () => {
    // Node 20.19 and Node 24.21 gave this digest. CI runs this test on the installed Node.
    expect(trainedDigest()).toBe(TRAINED);
  });
});

describe("the optimizer", () => {
  test("AdamW takes the steps of its formula", () => {
    const [w, g] = [
      [0.5, -1, 2, 0],
      [0.1, -0.2, 0.3, 0.4],
    ];
    const adam = adamW(space, { decay: 0.01 });
    const [parameters, gradient] = [filled(w!), filled(g!)];
    const state = adam.init(parameters);
    const expected = w!.slice();
    const [mean, square] = [new Array(4).fill(0), new Array(4).fill(0)];
    for (let t = 1; t <= 3; t++) {
      adam.update(parameters, gradient, state, 0.05);
      for (let i = 0; i < 4; i++) {
        mean[i] = 0.9 * mean[i] + 0.1 * g![i]!;
        square[i] = 0.999 * square[i] + 0.001 * g![i]! ** 2;
        const step = mean[i] / (1 - 0.9 ** t) / (Math.sqrt(square[i] / (1 - 0.999 ** t)) + 1e-8);
        expected[i] = expected[i]! * (1 - 0.05 * 0.01) - 0.05 * step;
      }
    }
    space.view(parameters).forEach((each, i) => {
      expect(each).toBeCloseTo(expected[i]!, 5);
    });
  });

  test("what is exempt does not decay, and the rest has the bits that it has without the exemption", () => {
    const updated = (options: Parameters<typeof adamW>[1]) => {
      const [parameters, gradient] = [filled(noise(16, 7)), filled(noise(16, 8))];
      const adam = adamW(space, options);
      const state = adam.init(parameters);
      for (let t = 0; t < 3; t++) adam.update(parameters, gradient, state, 0.05);
      return [...space.view(parameters)];
    };
    const [none, all] = [updated({}), updated({ decay: 0.5 })];
    const part = updated({ decay: 0.5, exempt: [{ from: 4, length: 8 }] });
    expect(part).toEqual([...all.slice(0, 4), ...none.slice(4, 12), ...all.slice(12)]);
  });

  test("clipping keeps the direction, and following moves by its share", () => {
    const gradient = filled([3, 4, 0, 0]);
    expect(clipNorm(space, gradient, 0.5)).toBeCloseTo(5, 6);
    expect([...space.view(gradient)].map((each) => Number(each.toFixed(6)))).toEqual([0.3, 0.4, 0, 0]);
    const target = filled([1, 1, 1, 1]);
    follow(space, target, gradient, 1);
    expect([...space.view(target)]).toEqual([...space.view(gradient)]);
  });
});

const TRAINED = "f152ea37668ed88dabd98991b50735fb435aa463d489ee20005944883777cb6d";
