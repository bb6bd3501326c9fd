/** The steps of parallel environments under a policy between two updates, with their advantages.
 *  In: a crew of environments, an actor and a critic. Out: for each step the observation, the choice and its
 *  probability, the advantage by GAE(λ), and the return, which is the critic's target. */
import { log, type Rng } from "../../base/index.ts";
import { type Floats, type Mlp, padded, type TensorSpace } from "../tensor/index.ts";
import type { Crew } from "./crew.ts";

interface ActedSteps {
  readonly rows: number;
  /** Observations, one row of the networks' input width for each step. */
  readonly seen: Floats;
  readonly chosen: Int32Array;
  readonly logp: Float64Array;
  readonly advantage: Float64Array;
  readonly goal: Float64Array;
  /** Takes the next steps and fills the arrays above. */
  collect(draws: Rng): void;
  /** The critic's mean value over the steps. */
  meanValue(): number;
}

interface ActorParts {
  readonly crew: Crew;
  readonly actor: Mlp;
  readonly critic: Mlp;
  readonly environments: number;
  readonly horizon: number;
  readonly discount: number;
  readonly trace: number;
  /** Scratch space: inputs, masks, shares and their log-sums, with at least one row for each environment. */
  readonly scratch: Readonly<Record<"input" | "mask" | "slope" | "sums", Floats>>;
}

export function makeActedSteps(space: TensorSpace, parts: ActorParts): ActedSteps {
  const { crew, actor, critic, environments, horizon, discount, trace } = parts;
  const { input, mask, slope, sums } = parts.scratch;
  const { inputWidth: width, outputWidth: wide } = actor;
  const rows = environments * horizon;
  const seen = space.floats(padded(rows, 4) * width);
  const chosen = new Int32Array(rows);
  const ended = new Uint8Array(rows);
  const [logp, value, reward, advantage, goal] = Array.from({ length: 5 }, () => new Float64Array(rows)) as [
    ...[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array],
  ];

  const observedValues = (): Float64Array => {
    crew.observe(space.view(input), width);
    const out = space.view(critic.forward(input, environments));
    return Float64Array.from({ length: environments }, (_, i) => out[i * critic.outputWidth]!);
  };

  /** The value of the state where a truncated episode stopped. It stands for the rewards after the cut. */
  const valueOfStop = (i: number, vector: Float32Array): number => {
    space.view(input).set(vector, i * width);
    return space.view(critic.forward({ at: input.at + 4 * i * width, length: width }, 1))[0]!;
  };

  const act = (at: number, draws: Rng): void => {
    value.set(observedValues(), at);
    space.view(seen).set(space.view(input).subarray(0, environments * width), at * width);
    const out = actor.forward(input, environments);
    space.kernels.softmaxRows(out.at, mask.at, slope.at, sums.at, environments, wide);
    const shares = space.view(slope);
    for (let i = 0; i < environments; i++) {
      const a = drawFrom(shares.subarray(i * wide, i * wide + crew.candidates.length), draws.float());
      const { reward: paid, end, vector } = crew.act(i, a);
      chosen[at + i] = a;
      logp[at + i] = log(Math.max(1e-30, shares[i * wide + a]!));
      ended[at + i] = end === "none" ? 0 : 1;
      reward[at + i] = vector === undefined ? paid : paid + discount * valueOfStop(i, vector);
    }
  };

  /** Generalised advantage estimation (Schulman et al., 2016). */
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

  return {
    ...{ rows, seen, chosen, logp, advantage, goal },
    collect(draws) {
      for (let t = 0; t < horizon; t++) act(t * environments, draws);
      estimate(observedValues());
    },
    meanValue: () => value.reduce((sum, each) => sum + each, 0) / rows,
  };
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
