/** Proximal policy optimisation (Schulman et al., 2017) on parallel environments. It includes the details that matter:
 *  orthogonal start, GAE(λ), advantages normalised per minibatch, clipped ratio, Adam with ε = 1e-5, annealed rate and
 *  clip, clipped gradient. A truncated end is bootstrapped with the value of its last state; a terminal end is not.
 *  In: environments, a feature spec, a config, an Rng. Out: an "mlp-greedy" or "mlp-softmax" model and a report.
 *  Training = f(environments, config, seed). A resumed training replays the choices of the open episodes. */
import type { Digest, Json, Rng } from "../../base/index.ts";
import { makeFeatureReader } from "../../policy/index.ts";
import { adamW, makeMlp, openTensors, orthogonalStart, padded, type TensorSpace } from "../tensor/index.ts";
import { makeActedSteps } from "./acted-steps.ts";
import { type CrewWorld, makeCrew, standardiseCrew } from "./crew.ts";
import type { Standardisation } from "./dense-batch.ts";
import { type FitHooks, fitLearner, type GradientLearner } from "./fit.ts";
import { normalised, policySlope } from "./ppo-loss.ts";
import type { OnlineReport } from "./report.ts";
import { networkModel, readBack } from "./setup.ts";
import { checkConfig } from "./train-network.ts";
import { runNow } from "./work.ts";

export interface PpoConfig {
  readonly hidden?: readonly number[];
  /** Environment steps in total. */
  readonly steps?: number;
  /** Number of parallel environments, and steps of each between two updates. */
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
  /** True (default): the policy takes its best choice. False: it draws. */
  readonly greedy?: boolean;
  /** True: standardise observations by their spread under random choices (default: false). Words need it, because each
   *  is small and rare. Do not use it if good policies reach states that random choices never reach. */
  readonly standardise?: boolean;
  /** Decoupled weight decay of the policy's network. Without it, an environment with few tasks is memorised. */
  readonly decay?: number;
}

/** An update needs many steps and few passes over them. With 8 × 32 steps and 20 passes, one seed in ten of CartPole
 *  never leaves a plateau, and others get worse again at the end. */
const PPO_DEFAULTS = {
  hidden: [64, 64] as readonly number[],
  ...{ steps: 100_000, environments: 8, horizon: 128, epochs: 10, batch: 128, rate: 1e-3 },
  ...{ discount: 0.99, trace: 0.95, clip: 0.2, entropy: 0, greedy: true },
  ...{ standardise: false, decay: 0 },
};

const VALUE_WEIGHT = 0.5;
const LONGEST_GRADIENT = 0.5;
const ADAM_EPSILON = 1e-5;

/** Environment number `i` differs from the others only by its rng. */
export interface PpoWorld extends CrewWorld {
  /** Identifies the environment in the model's config. */
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
    atLeast0: { rate, clip, entropy: options.entropy, decay: options.decay },
  });
  const space = openTensors();
  const size = makeFeatureReader(world.spec).size;
  const by = options.standardise
    ? standardiseCrew(world, { count: environments, rng: rng.split("scale") })
    : { mean: new Float64Array(size), scale: new Float64Array(size).fill(1) };
  const learner = makePpo(space, { world, options, rng, by });
  const updates = Math.ceil(steps / (environments * horizon));
  const { standardise, decay, ...named } = options;
  const facts = {
    ...{ algorithm: "ppo", world: world.digest, ...named, hidden: [...hidden] },
    ...(standardise ? { standardise } : {}),
    ...(decay > 0 ? { decay } : {}),
  };
  const fitted = runNow(
    fitLearner(space, learner, {
      ...{ steps: updates, every: Math.max(1, Math.floor(updates / 50)), patience: 0, ...hooks },
      identity: { facts, spec: world.spec as unknown as Json, seed: rng.split("identity").u32() },
    }),
  );
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
  readonly by: Standardisation;
}

function makePpo(space: TensorSpace, { world, options, rng, by }: PpoParts) {
  const { environments, horizon, epochs, hidden, discount, trace } = options;
  const crew = makeCrew(world, { count: environments, rng: rng.split("environments"), by });
  const arms = crew.candidates.map(({ id }) => id);
  const rows = environments * horizon;
  const most = Math.max(padded(options.batch, 4), padded(environments, 4));
  const shape = { inputs: crew.size, hidden, outputs: arms.length, activation: "tanh" as const };
  const actor = makeMlp(space, shape, most);
  const critic = makeMlp(space, { ...shape, outputs: 1 }, most);
  orthogonalStart(shape, space.view(actor.parameters), rng.split("actor"), 0.01);
  orthogonalStart(critic.shape, space.view(critic.parameters), rng.split("critic"), 1);
  const optimizers = [actor, critic].map((net) =>
    adamW(space, {
      ...{ epsilon: ADAM_EPSILON, exempt: net.biases },
      decay: net === actor ? options.decay : 0,
    }),
  );
  const moments = [actor, critic].map((net, n) => optimizers[n]!.init(net.parameters));
  const width = actor.inputWidth;
  const wide = actor.outputWidth;
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
  const scratch = { input, mask, slope, sums };
  const acted = makeActedSteps(space, {
    ...{ crew, actor, critic, environments, horizon, discount, trace, scratch },
  });
  const updates = Math.ceil(options.steps / rows);

  const learnFrom = (order: readonly number[], left: number): number => {
    const count = order.length;
    const [x, all] = [space.view(input), space.view(acted.seen)];
    order.forEach((row, r) => {
      x.set(all.subarray(row * width, (row + 1) * width), r * width);
    });
    const out = actor.forward(input, count);
    space.kernels.softmaxRows(out.at, mask.at, slope.at, sums.at, count, wide);
    const scaled = normalised(order.map((row) => acted.advantage[row]!));
    let loss = policySlope(space.view(slope), {
      ...{ order, scaled, logp: acted.logp, chosen: acted.chosen, wide, arms: arms.length },
      clip: options.clip * left,
      entropy: options.entropy,
    });
    const values = space.view(critic.forward(input, count));
    const dv = space.view(push);
    dv.fill(0);
    order.forEach((row, r) => {
      const error = values[r * critic.outputWidth]! - acted.goal[row]!;
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
      optimizers[n]!.update(net.parameters, net.gradient, moments[n]!, options.rate * left);
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
      acted.collect(draws.split("choices"));
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
    measure: () => ({ ...crew.measure(), value: acted.meanValue() }),
  };
  return {
    ...learner,
    ...{ shape, arms },
    episodes: () => crew.count(),
    /** The largest difference of a logit between the network in memory and `forward`. */
    compare(forward: (vector: Float64Array) => Float64Array): number {
      crew.observe(space.view(input), width);
      const live = space.view(actor.forward(input, environments)).slice();
      const x = space.view(input);
      crew.observe(x, width, "features");
      let worst = 0;
      for (let i = 0; i < environments; i++)
        forward(Float64Array.from(x.subarray(i * width, i * width + crew.size))).forEach((each, a) => {
          worst = Math.max(worst, Math.abs(each - live[i * wide + a]!) / Math.max(1, Math.abs(each)));
        });
      return worst;
    },
  };
}
