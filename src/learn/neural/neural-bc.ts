/** Behaviour cloning with a network: the logged choice is the label; rewards are not used.
 *    −log softmax(f(s))[a] + β · mean(f(s)²)  over the selectable candidates.
 *  In: logged rows, a config, an Rng. Out: an "mlp-softmax" model and a report. Training = f(rows, config, seed). */
import type { Rng } from "../../base/index.ts";
import { adamW, clipNorm, padded, type TensorSpace, uniformStart } from "../tensor/index.ts";
import { drawRows, makeDenseBatch } from "./dense-batch.ts";
import type { FitHooks } from "./fit.ts";
import {
  checkConfig,
  EVALUATED,
  LONGEST_GRADIENT,
  type LoggedData,
  type MemberParts,
  NETWORK_DEFAULTS,
  type NetworkConfig,
  type NetworkRows,
  type NeuralTrained,
  type RowLearner,
  rowsInMemory,
  trainNetwork,
} from "./train-network.ts";
import { runNow, type Work } from "./work.ts";

export interface NeuralBcConfig extends NetworkConfig {
  /** β: keeps the logits small. */
  readonly penalty?: number;
}

const BC_DEFAULTS = { ...NETWORK_DEFAULTS, rate: 1e-3, patience: 6, penalty: 1e-3 };

export function trainNeuralBc(
  data: LoggedData,
  config: NeuralBcConfig,
  rng: Rng,
  hooks: FitHooks = {},
): NeuralTrained {
  return runNow(learnNeuralBc(rowsInMemory(data), config, rng, hooks));
}

export function* learnNeuralBc(
  rows: NetworkRows,
  config: NeuralBcConfig,
  rng: Rng,
  hooks: FitHooks,
): Work<NeuralTrained> {
  const options = { ...BC_DEFAULTS, ...config };
  const { penalty } = options;
  checkConfig({ counts: {}, shares: {}, atLeast0: { penalty } });
  return yield* trainNetwork(rows, {
    ...{ algorithm: "neural-bc", kind: "mlp-softmax", options, chained: false, rng, hooks },
    member: (space, parts) => makeMember(space, { ...parts, options }),
  });
}

function makeMember(
  space: TensorSpace,
  { net, prepared, rng, options }: MemberParts & { options: NeuralBcConfig & typeof BC_DEFAULTS },
): RowLearner {
  const { batch, rate, penalty, decay } = options;
  const { data, train, held, by } = prepared;
  const parameters = space.floats(net.parameters.length);
  uniformStart(net.shape, space.view(parameters), rng.split("weights"));
  const adam = adamW(space, { decay, exempt: net.biases });
  const moments = adam.init(parameters);
  const most = padded(Math.max(batch, EVALUATED), 4);
  const [wide, now] = [net.outputWidth, makeDenseBatch(space, { data, by, most })];
  const [slope, sums] = [space.floats(most * wide), space.floats(most)];

  /** The loss of the rows in `now`. Writes its gradient with respect to the logits to `slope`. */
  const lossOf = (rows: number): number => {
    const out = net.forward(now.input, rows, parameters);
    space.kernels.softmaxRows(out.at, now.mask.at, slope.at, sums.at, rows, wide);
    const [logits, shares, logSums] = [space.view(out), space.view(slope), space.view(sums)];
    const arms = data.arms.length;
    let loss = 0;
    for (let r = 0; r < rows; r++) {
      const at = r * wide + data.action[now.rows[r]!]!;
      loss += logSums[r]! - logits[at]!;
      shares[at] = shares[at]! - 1;
      for (let a = r * wide; a < r * wide + arms; a++) {
        loss += (penalty * logits[a]! * logits[a]!) / arms;
        shares[a] = (shares[a]! + (2 * penalty * logits[a]!) / arms) / rows;
      }
    }
    return loss / rows;
  };

  return {
    state: [parameters, moments.mean, moments.square],
    parameters: [parameters],
    seek(step) {
      moments.step = step;
    },
    *step(step) {
      yield* drawRows(now, train, batch, rng.split(step));
      const loss = lossOf(batch);
      net.backward(slope, parameters);
      clipNorm(space, net.gradient, LONGEST_GRADIENT);
      adam.update(parameters, net.gradient, moments, rate);
      return loss;
    },
    *evaluate() {
      if (held.length === 0) return undefined;
      let loss = 0;
      for (let from = 0; from < held.length; from += EVALUATED) {
        const rows = Math.min(EVALUATED, held.length - from);
        now.rows.set(held.subarray(from, from + rows));
        yield* now.load(rows);
        loss += (lossOf(rows) * rows) / held.length;
      }
      return { loss };
    },
  };
}
