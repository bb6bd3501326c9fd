/** Proximal policy optimisation (Schulman et al., 2017) on environments that run side by side, with the details that matter:
 *  orthogonal start, GAE(λ), advantages normalised per minibatch, clipped ratio, Adam with ε = 1e-5, annealed rate and
 *  clip, clipped gradient. A truncated end is bootstrapped with the value of the state it stopped in; a terminal one is not.
 *  In: environments, a feature spec, a config, an Rng. Out: an "mlp-greedy" or "mlp-softmax" model and a report.
 *  Training = f(environments, config, seed); a resumed one replays the choices of the open episodes. */
import { type Digest, exp, type Json, log, type Rng } from "../../base/index.ts";
import { type DecisionEnvironment, type FeatureSpec, makeFeatureReader } from "../../policy/index.ts";
import {
  adamW,
  type Floats,
  makeMlp,
  openTensors,
  orthogonalStart,
  padded,
  type TensorSpace,
} from "../tensor/index.ts";
import { makeCrew } from "./crew.ts";
import { type FitHooks, fitLearner, type GradientLearner } from "./fit.ts";
import type { OnlineReport } from "./report.ts";
import { networkModel, readBack } from "./setup.ts";
import { checkConfig } from "./train-network.ts";

export interface PpoConfig {
  readonly hidden?: readonly number[];
  /** Environment steps in all. */
  readonly steps?: number;
  /** Environments side by side, and steps of each between two updates. */
  readonly environments?: number;
  readonly horizon?: number;
  readonly epochs?: number;
  readonly batch?: number;
  readonly rate?: number;
  readonly discount?: number;
  /** λ of the advantage estimate. */
  readonly trace?: number;
  readonly clip?: number;
  readonly entropy?: number;
  /** Whether the policy takes its best choice (default) or draws. */
  readonly greedy?: boolean;
}

export const PPO_DEFAULTS = {
  hidden: [64, 64] as readonly number[],
  ...{ steps: 100_000, environments: 8, horizon: 32, epochs: 20, batch: 256, rate: 1e-3 },
  ...{ discount: 0.98, trace: 0.8, clip: 0.2, entropy: 0, greedy: true },
};

const VALUE_WEIGHT = 0.5;
const LONGEST_GRADIENT = 0.5;
const ADAM_EPSILON = 1e-5;

export interface PpoWorld {
  /** Environment number `i`; they differ by their rng alone. */
  make(i: number): DecisionEnvironment;
  readonly spec: FeatureSpec;
  /** What names the world in the model's config. */
  readonly digest: Digest;
}

export interface PpoTrained {
  readonly model: ReturnType<typeof networkModel>;
  readonly report: OnlineReport;
}

export function trainPpo(world: PpoWorld, config: PpoConfig, rng: Rng, hooks: FitHooks = {}): PpoTrained {
  const options = { ...PPO_DEFAULTS, ...config };
  const { hidden, steps, environments, horizon, epochs, batch, rate, discount, trace, clip } = options;
  checkConfig({
    counts: { steps, environments, horizon, epochs, batch },
    shares: { discount, trace },
    atLeast0: { rate, clip, entropy: options.entropy },
  });
  const space = openTensors();
  const learner = makePpo(space, { world, options, rng });
  const updates = Math.ceil(steps / (environments * horizon));
  const facts = { algorithm: "ppo", world: world.digest, ...options, hidden: [...hidden] };
  const fitted = fitLearner(space, learner, {
    ...{ steps: updates, every: Math.max(1, Math.floor(updates / 50)), patience: 0, ...hooks },
    identity: { facts, spec: world.spec as unknown as Json, seed: rng.split("identity").u32() },
  });
  const size = makeFeatureReader(world.spec).size;
  const by = { mean: new Float64Array(size), scale: new Float64Array(size).fill(1) };
  const model = networkModel({
    ...{ kind: options.greedy ? "mlp-greedy" : "mlp-softmax", shape: learner.shape, spec: world.spec, by },
    ...{ arms: learner.arms, config: facts, members: [space.view(learner.parameters[0]!)] },
  });
  const { changed, ...course } = fitted;
  const checks = { weightsChanged: changed, lossFinite: true, reproduced: learner.compare(readBack(model)) };
  return { model, report: { ...course, checks, episodes: learner.episodes(), warnings: [] } };
}

interface PpoParts {
  readonly world: PpoWorld;
  readonly options: typeof PPO_DEFAULTS;
  readonly rng: Rng;
}

function makePpo(space: TensorSpace, { world, options, rng }: PpoParts) {
  const { environments, horizon, epochs, hidden, discount, trace } = options;
  const crew = makeCrew(world, environments, rng.split("environments"));
  const arms = crew.candidates.map(({ id }) => id);
  const rows = environments * horizon;
  const most = Math.max(padded(options.batch, 4), padded(environments, 4));
  const shape = { inputs: crew.size, hidden, outputs: arms.length, activation: "tanh" as const };
  const actor = makeMlp(space, shape, most);
  const critic = makeMlp(space, { ...shape, outputs: 1 }, most);
  orthogonalStart(shape, space.view(actor.parameters), rng.split("actor"), 0.01);
  orthogonalStart(critic.shape, space.view(critic.parameters), rng.split("critic"), 1);
  const adam = adamW(space, { epsilon: ADAM_EPSILON });
  const moments = [actor, critic].map((net) => adam.init(net.parameters));
  const width = actor.inputWidth;
  const wide = actor.outputWidth;
  const seen = space.floats(padded(rows, 4) * width);
  const input = space.floats(most * width);
  const mask = space.floats(most * wide);
  const [slope, sums, push] = [
    space.floats(most * wide),
    space.floats(most),
    space.floats(most * critic.outputWidth),
  ];
  for (let r = 0; r < most; r++)
    crew.candidates.forEach(({ selectable }, a) => {
      space.view(mask)[r * wide + a] = selectable ? 1 : 0;
    });
  const chosen = new Int32Array(rows);
  const [logp, value, reward, advantage, goal] = Array.from({ length: 5 }, () => new Float64Array(rows)) as [
    ...[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array],
  ];
  const ended = new Uint8Array(rows);
  const updates = Math.ceil(options.steps / rows);

  /** Values of `count` rows of `block`. */
  const valuesOf = (block: Floats, count: number): Float64Array => {
    const out = space.view(critic.forward(block, count));
    return Float64Array.from({ length: count }, (_, r) => out[r * critic.outputWidth]!);
  };

  const collect = (draws: Rng): Float64Array => {
    for (let t = 0; t < horizon; t++) {
      crew.observe(space.view(input), width);
      const at = t * environments;
      space.view(seen).set(space.view(input).subarray(0, environments * width), at * width);
      value.set(valuesOf(input, environments), at);
      const out = actor.forward(input, environments);
      space.kernels.softmaxRows(out.at, mask.at, slope.at, sums.at, environments, wide);
      const shares = space.view(slope);
      for (let i = 0; i < environments; i++) {
        const a = drawFrom(shares.subarray(i * wide, i * wide + arms.length), draws.float());
        chosen[at + i] = a;
        logp[at + i] = log(Math.max(1e-30, shares[i * wide + a]!));
        const { reward: paid, end, vector } = crew.act(i, a);
        reward[at + i] = paid;
        ended[at + i] = end === "none" ? 0 : 1;
        if (end !== "truncated") continue;
        space.view(input).set(vector!, i * width);
        // The value of where it stopped stands for what was still to come.
        const last = space.view(critic.forward({ at: input.at + 4 * i * width, length: width }, 1))[0]!;
        reward[at + i] = paid + discount * last;
      }
    }
    crew.observe(space.view(input), width);
    return valuesOf(input, environments);
  };

  const estimate = (last: Float64Array): void => {
    for (let i = 0; i < environments; i++) {
      let ahead = 0;
      for (let t = horizon - 1; t >= 0; t--) {
        const at = t * environments + i;
        const alive = 1 - ended[at]!;
        const next = t === horizon - 1 ? last[i]! : value[at + environments]!;
        const error = reward[at]! + discount * alive * next - value[at]!;
        ahead = error + discount * trace * alive * ahead;
        advantage[at] = ahead;
        goal[at] = ahead + value[at]!;
      }
    }
  };

  const learnFrom = (order: readonly number[], left: number): number => {
    const count = order.length;
    const [x, all] = [space.view(input), space.view(seen)];
    order.forEach((row, r) => {
      x.set(all.subarray(row * width, (row + 1) * width), r * width);
    });
    const out = actor.forward(input, count);
    space.kernels.softmaxRows(out.at, mask.at, slope.at, sums.at, count, wide);
    const scaled = normalised(order.map((row) => advantage[row]!));
    let loss = policySlope(space.view(slope), {
      order,
      scaled,
      logp,
      chosen,
      wide,
      arms: arms.length,
      clip: options.clip * left,
      entropy: options.entropy,
    });
    const values = space.view(critic.forward(input, count));
    const dv = space.view(push);
    dv.fill(0);
    order.forEach((row, r) => {
      const error = values[r * critic.outputWidth]! - goal[row]!;
      loss += (VALUE_WEIGHT * error * error) / count;
      dv[r * critic.outputWidth] = (2 * VALUE_WEIGHT * error) / count;
    });
    actor.backward(slope);
    critic.backward(push);
    const nets = [actor, critic];
    const norm = Math.sqrt(
      nets.reduce((sum, net) => sum + space.kernels.squaredNorm(net.gradient.at, net.gradient.length), 0),
    );
    nets.forEach((net, n) => {
      if (norm > LONGEST_GRADIENT)
        space.kernels.scale(net.gradient.at, net.gradient.length, LONGEST_GRADIENT / norm);
      adam.update(net.parameters, net.gradient, moments[n]!, options.rate * left);
    });
    return loss;
  };

  const learner: GradientLearner = {
    state: [actor, critic].flatMap((net, n) => [net.parameters, moments[n]!.mean, moments[n]!.square]),
    parameters: [actor.parameters],
    memory: () => ({ taken: moments[0]!.step, crew: crew.memory() }),
    seek(_step, memory) {
      const known = memory as { taken: number; crew: Json } | undefined;
      for (const each of moments) each.step = known?.taken ?? 0;
      crew.seek(known?.crew);
    },
    step(step) {
      const draws = rng.split(step);
      estimate(collect(draws.split("choices")));
      const left = 1 - step / updates;
      let [loss, batches] = [0, 0];
      for (let epoch = 0; epoch < epochs; epoch++) {
        const order = draws.split(epoch).shuffle(Array.from({ length: rows }, (_, r) => r));
        for (let from = 0; from < rows; from += options.batch, batches++)
          loss += learnFrom(order.slice(from, from + options.batch), left);
      }
      return loss / batches;
    },
    evaluate: () => undefined,
    measure: () => ({ ...crew.measure(), value: value.reduce((sum, each) => sum + each, 0) / rows }),
  };
  return {
    ...learner,
    ...{ shape, arms },
    episodes: () => crew.count(),
    /** The largest difference of a logit between the network in memory and another reading of it. */
    compare(forward: (vector: Float64Array) => Float64Array): number {
      crew.observe(space.view(input), width);
      const live = space.view(actor.forward(input, environments)).slice();
      const x = space.view(input);
      let worst = 0;
      for (let i = 0; i < environments; i++)
        forward(Float64Array.from(x.subarray(i * width, i * width + crew.size))).forEach((each, a) => {
          worst = Math.max(worst, Math.abs(each - live[i * wide + a]!) / Math.max(1, Math.abs(each)));
        });
      return worst;
    },
  };
}

interface SlopeParts {
  readonly order: readonly number[];
  readonly scaled: readonly number[];
  readonly logp: Float64Array;
  readonly chosen: Int32Array;
  readonly wide: number;
  readonly arms: number;
  readonly clip: number;
  readonly entropy: number;
}

/** Shares become the slope of the clipped surrogate, less the entropy, by the logits. Returns that loss. */
function policySlope(shares: Float32Array, parts: SlopeParts): number {
  const { order, scaled, logp, chosen, wide, arms, clip, entropy: weight } = parts;
  const count = order.length;
  let loss = 0;
  order.forEach((row, r) => {
    const at = r * wide;
    const a = chosen[row]!;
    const ratio = exp(log(Math.max(1e-30, shares[at + a]!)) - logp[row]!);
    const gain = scaled[r]!;
    const bounded = Math.min(1 + clip, Math.max(1 - clip, ratio));
    loss -= Math.min(ratio * gain, bounded * gain) / count;
    // The minimum has no slope where the bounded ratio is taken.
    const pull = ratio * gain <= bounded * gain ? (ratio * gain) / count : 0;
    let entropy = 0;
    if (weight > 0)
      for (let j = 0; j < arms; j++)
        if (shares[at + j]! > 0) entropy -= shares[at + j]! * log(shares[at + j]!);
    loss -= (weight * entropy) / count;
    for (let j = 0; j < arms; j++) {
      const share = shares[at + j]!;
      const own = pull * (share - (j === a ? 1 : 0));
      const spread = weight > 0 && share > 0 ? (weight * share * (log(share) + entropy)) / count : 0;
      shares[at + j] = own + spread;
    }
  });
  return loss;
}

/** Mean 0 and deviation 1. */
function normalised(values: readonly number[]): number[] {
  const mean = values.reduce((sum, each) => sum + each, 0) / values.length;
  const square = values.reduce((sum, each) => sum + (each - mean) * (each - mean), 0);
  const deviation = Math.sqrt(square / Math.max(1, values.length - 1)) + 1e-8;
  return values.map((each) => (each - mean) / deviation);
}

function drawFrom(shares: Float32Array, draw: number): number {
  let sum = 0;
  let last = 0;
  for (let a = 0; a < shares.length; a++) {
    if (shares[a] === 0) continue;
    last = a;
    sum += shares[a]!;
    if (draw < sum) return a;
  }
  return last;
}
