/** Discrete conservative Q-learning (Kumar, Zhou, Tucker and Levine, 2020; the discrete loss of d3rlpy):
 *    Huber(Q(s, a) − y) + α · mean(log Σ_a′ exp Q(s, a′) − Q(s, a)),
 *    y = r + γ · Q̄(s′, argmax_a′ Q(s′, a′)); y = r at an end.
 *  Q̄ is a target network (double Q). Sums and maxima run over the selectable candidates. γ = 0 learns one decision at
 *  a time: routing.
 *  In: logged rows, a config, an Rng. Out: an "mlp-greedy" model and a report. Training = f(rows, config, seed). */
import { type Rng, RollbookError } from "../../base/index.ts";
import { requireWholeChains } from "../rows/index.ts";
import {
  type AdamState,
  adamW,
  clipNorm,
  type Floats,
  follow,
  type Mlp,
  padded,
  type TensorSpace,
  uniformStart,
} from "../tensor/index.ts";
import { ENDED } from "./chain-columns.ts";
import { type DenseBatch, drawRows, makeDenseBatch } from "./dense-batch.ts";
import type { FitHooks } from "./fit.ts";
import type { PreparedRows } from "./setup.ts";
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
import { withReturns } from "./transitions.ts";
import type { WidePart } from "./wide.ts";
import { runNow, type Work } from "./work.ts";

export interface CqlConfig extends NetworkConfig {
  /** γ: the discount of a reward one step later; 0 for one decision at a time. */
  readonly discount?: number;
  /** α: the weight of the conservative term; 0 is plain double Q-learning. */
  readonly conservatism?: number;
  /** Steps between two copies of the network into its target. */
  readonly targetEvery?: number;
  /** Target of a choice. `bootstrap` (default): its reward plus the best value of the next state. `return`: the return
   *  that the log earned from there on. A next state that does not show the choice's effect teaches nothing about the
   *  choice. If a policy sees less than the whole state, use `return`.
   *  Returns belong to the behaviour policy, which is improved once. */
  readonly goal?: "bootstrap" | "return";
  /** Wide and deep: a linear model of every word is fitted first, and the network learns to correct it. For text with
   *  many rare words, which collide in the network's few buckets.
   *  Not with bootstrapping, because its targets change. */
  readonly wide?: boolean;
}

export const CQL_DEFAULTS = { ...NETWORK_DEFAULTS, discount: 0, conservatism: 1, targetEvery: 500 };

export function trainCql(data: LoggedData, config: CqlConfig, rng: Rng, hooks: FitHooks = {}): NeuralTrained {
  const { discount, goal } = checkCql(config);
  if (discount > 0) requireWholeChains(data.rows, "decision");
  const rows = goal === "return" ? withReturns(data.rows, discount) : data.rows;
  return runNow(learnCql(rowsInMemory({ ...data, rows }), config, rng, hooks));
}

function checkCql(config: CqlConfig): typeof CQL_DEFAULTS & CqlConfig {
  const options = { ...CQL_DEFAULTS, ...config };
  const { discount, targetEvery, conservatism } = options;
  checkConfig({ counts: { targetEvery }, shares: { discount }, atLeast0: { conservatism } });
  return options;
}

/** `rows`: whole chains if the discount is above 0; returns in place of rewards if the goal is `return`. */
export function* learnCql(
  rows: NetworkRows,
  config: CqlConfig,
  rng: Rng,
  hooks: FitHooks,
): Work<NeuralTrained> {
  const { wide = false, ...options } = checkCql(config);
  const regression = options.goal === "return" || options.discount === 0;
  if (wide && !regression) throw movingGoals(options.discount);
  return yield* trainNetwork(rows, {
    ...{ algorithm: "cql", kind: "mlp-greedy", options, chained: !regression, wide, rng, hooks },
    member: (space, parts) =>
      makeQLearner(space, {
        ...{ ...parts, target: bestValue },
        options: regression ? { ...options, discount: 0 } : options,
      }),
  });
}

function movingGoals(discount: number): RollbookError {
  return new RollbookError(
    "bad-options",
    { discount, wide: true },
    `a wide part is fitted once, and with a discount of ${discount} the goals of bootstrapping move. Take goal return, or discount 0.`,
  );
}

interface QLearnerOptions extends MemberParts {
  readonly options: typeof CQL_DEFAULTS & CqlConfig;
  readonly target: FutureValue;
}

/** Value of the state of row `row`, from the values that the network and its target give to each arm. */
type FutureValue = (state: {
  readonly row: number;
  readonly online: Float32Array;
  readonly target: Float32Array;
  readonly open: Float32Array;
}) => number;

/** Q̄(s, argmax Q(s, ·)) over the selectable arms: double Q-learning. */
export const bestValue: FutureValue = ({ online, target, open }) => {
  let top = -1;
  for (let a = 0; a < open.length; a++) if (open[a] === 1 && (top < 0 || online[a]! > online[top]!)) top = a;
  return target[top]!;
};

export function makeQLearner(
  space: TensorSpace,
  { net, prepared, options, rng, target: future, wide }: QLearnerOptions,
): RowLearner {
  const { batch, rate, discount, conservatism, targetEvery, decay } = options;
  const { data, train, held, by } = prepared;
  const parameters = space.floats(net.parameters.length);
  const target = space.floats(net.parameters.length);
  uniformStart(net.shape, space.view(parameters), rng.split("weights"));
  // With a wide part the outputs start at 0: the network learns a correction.
  if (wide !== undefined) space.view(parameters).fill(0, net.lastLayer);
  follow(space, target, parameters, 1);
  const adam = adamW(space, { decay, exempt: net.biases });
  const moments: AdamState = adam.init(parameters);
  const most = Math.max(batch, EVALUATED);
  const [now, after] = [0, 1].map(() => makeDenseBatch(space, { data, by, most })) as [
    DenseBatch,
    DenseBatch,
  ];
  const loss = lossOf(space, { net, data, discount, conservatism, most, future, wide });
  return {
    state: [parameters, moments.mean, moments.square, target],
    parameters: [parameters],
    seek(step) {
      moments.step = step;
    },
    *step(step) {
      yield* drawRows(now, train, batch, rng.split(step));
      const parts = yield* loss({ now, after, rows: batch, parameters, target, learn: true });
      clipNorm(space, net.gradient, LONGEST_GRADIENT);
      // Without successors the targets are fixed. A rate that decays to 0 averages out the noise of the minibatches.
      adam.update(parameters, net.gradient, moments, discount > 0 ? rate : rate * (1 - step / options.steps));
      if ((step + 1) % targetEvery === 0) follow(space, target, parameters, 1);
      return parts.loss;
    },
    *evaluate() {
      if (held.length === 0) return undefined;
      const sums = { loss: 0, error: 0, gap: 0, value: 0 };
      for (let from = 0; from < held.length; from += EVALUATED) {
        const rows = Math.min(EVALUATED, held.length - from);
        now.rows.set(held.subarray(from, from + rows));
        yield* now.load(rows);
        const parts = yield* loss({ now, after, rows, parameters, target, learn: false });
        for (const key of ["loss", "error", "gap", "value"] as const)
          sums[key] += (parts[key] * rows) / held.length;
      }
      return sums;
    },
  };
}

interface LossParts {
  readonly loss: number;
  readonly error: number;
  readonly gap: number;
  readonly value: number;
}

interface LossPass {
  readonly now: DenseBatch;
  readonly after: DenseBatch;
  readonly rows: number;
  readonly parameters: Floats;
  readonly target: Floats;
  /** If true, also fills the network's gradient. */
  readonly learn: boolean;
}

/** The loss of a minibatch and its parts:
 *  Bellman `error`, conservative `gap`, and the mean `value` of the logged choices. */
function lossOf(
  space: TensorSpace,
  {
    net,
    data,
    discount,
    conservatism,
    most,
    future,
    wide: linear,
  }: Pick<MemberParts, "net" | "wide"> & {
    future: FutureValue;
    data: PreparedRows["data"];
    discount: number;
    conservatism: number;
    most: number;
  },
): (pass: LossPass) => Work<LossParts> {
  const wide = net.outputWidth;
  const lines = padded(most, 4);
  const [slope, sums, delta] = [space.floats(lines * wide), space.floats(lines), space.floats(lines)];
  const goal = new Float32Array(lines);
  return function* ({ now, after, rows, parameters, target, learn }) {
    for (let r = 0; r < rows; r++) goal[r] = data.reward[now.rows[r]!]!;
    if (discount > 0)
      yield* addFuture(space, { net, data, now, after, rows, parameters, target, discount, goal, future });
    const q = net.forward(now.input, rows, parameters);
    if (linear !== undefined) addLinear(space.view(q), { linear, now, rows, wide, arms: data.arms.length });
    space.kernels.softmaxRows(q.at, now.mask.at, slope.at, sums.at, rows, wide);
    const [values, shares, logSums, errors] = [q, slope, sums, delta].map((block) => space.view(block)) as [
      ...[Float32Array, Float32Array, Float32Array, Float32Array],
    ];
    let [gap, value] = [0, 0];
    for (let r = 0; r < rows; r++) {
      const chosen = values[r * wide + data.action[now.rows[r]!]!]!;
      errors[r] = chosen - goal[r]!;
      gap += logSums[r]! - chosen;
      value += chosen;
    }
    const error = space.kernels.huber(delta.at, rows);
    if (learn) {
      for (let i = 0; i < rows * wide; i++) shares[i] = (shares[i]! * conservatism) / rows;
      for (let r = 0; r < rows; r++) {
        const at = r * wide + data.action[now.rows[r]!]!;
        shares[at] = shares[at]! + (errors[r]! - conservatism) / rows;
      }
      net.backward(slope, parameters);
    }
    const loss = (error + conservatism * gap) / rows;
    return { loss, error: error / rows, gap: gap / rows, value: value / rows };
  };
}

/** Q = network + linear part.
 *  The gradient with respect to the network's outputs equals the gradient with respect to Q. */
function addLinear(
  q: Float32Array,
  {
    linear: { values },
    now,
    rows,
    wide,
    arms,
  }: { linear: WidePart; now: DenseBatch; rows: number; wide: number; arms: number },
): void {
  for (let r = 0; r < rows; r++) {
    const [at, from] = [r * wide, now.rows[r]! * arms];
    for (let a = 0; a < arms; a++) q[at + a] = q[at + a]! + values[from + a]!;
  }
}

/** goal += γ · the value of the successor, if there is one. */
function* addFuture(
  space: TensorSpace,
  pass: Omit<LossPass, "learn"> & {
    net: Mlp;
    data: PreparedRows["data"];
    discount: number;
    goal: Float32Array;
    future: FutureValue;
  },
): Work<void> {
  const { net, data, now, after, rows, parameters, target, discount, goal, future } = pass;
  for (let r = 0; r < rows; r++) after.rows[r] = data.next[now.rows[r]!]!;
  yield* after.load(rows);
  const first = space.view(net.forward(after.input, rows, parameters)).slice(0, rows * net.outputWidth);
  const second = space.view(net.forward(after.input, rows, target));
  const open = space.view(after.mask);
  for (let r = 0; r < rows; r++) {
    const row = after.rows[r]!;
    if (row === ENDED) continue;
    const [from, to] = [r * net.outputWidth, r * net.outputWidth + data.arms.length];
    const parts = { online: first.subarray(from, to), target: second.subarray(from, to) };
    goal[r] = goal[r]! + discount * future({ row, ...parts, open: open.subarray(from, to) });
  }
}
