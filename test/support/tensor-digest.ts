/** A small training run and the SHA-256 of its final weights: the same on every engine. */
import { createHash } from "node:crypto";
import { rngFrom } from "../../src/base/index.ts";
import { adamW, clipNorm, makeMlp, openTensors, uniformStart } from "../../src/learn/tensor/index.ts";

export function trainedDigest(): string {
  const space = openTensors();
  const shape = { inputs: 5, hidden: [24, 16], outputs: 3, activation: "tanh" as const };
  const net = makeMlp(space, shape, 32);
  const rng = rngFrom(7);
  uniformStart(shape, space.view(net.parameters), rng);
  const adam = adamW(space, { decay: 0.01 });
  const state = adam.init(net.parameters);
  const [input, slope, mask, sums] = [
    space.floats(32 * net.inputWidth),
    space.floats(32 * net.outputWidth),
    space.floats(32 * net.outputWidth),
    space.floats(32),
  ];
  for (let r = 0; r < 32; r++) for (let o = 0; o < 3; o++) space.view(mask)[r * net.outputWidth + o] = 1;
  for (let step = 0; step < 200; step++) {
    const x = space.view(input);
    for (let r = 0; r < 32; r++) for (let i = 0; i < 5; i++) x[r * net.inputWidth + i] = 4 * rng.float() - 2;
    const out = net.forward(input, 32);
    space.kernels.softmaxRows(out.at, mask.at, slope.at, sums.at, 32, net.outputWidth);
    const d = space.view(slope);
    for (let r = 0; r < 32; r++) {
      const label = x[r * net.inputWidth]! > 0 ? 0 : x[r * net.inputWidth + 1]! > 0.5 ? 1 : 2;
      d[r * net.outputWidth + label] = d[r * net.outputWidth + label]! - 1;
    }
    net.backward(slope);
    clipNorm(space, net.gradient, 1);
    adam.update(net.parameters, net.gradient, state, 1e-2);
  }
  const weights = space.view(net.parameters);
  return createHash("sha256")
    .update(new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength))
    .digest("hex");
}
