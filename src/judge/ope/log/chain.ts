/** Chains of decisions: rows in episode and step order, and the running products of their weights. */
import { RollbookError } from "../../../base/index.ts";
import { type Chain, type LoggedDecisions, startsOf, type Units, unitsBy } from "./logged-decisions.ts";

export interface Episodes {
  readonly count: number;
  /** Rows of episode e, in step order: rows[start[e]] … rows[start[e + 1] − 1]. */
  readonly rows: Int32Array;
  readonly start: Int32Array;
  /** Length of the longest episode. */
  readonly horizon: number;
  readonly discount: number;
  /** The unit of each episode. Every unit counts once in an estimate, independent of its number of episodes. */
  readonly units: Units;
}

export function episodesOf(log: LoggedDecisions): Episodes {
  const { episode, chain } = chainOf(log);
  const { count, of } = unitsBy(episode);
  const start = startsOf({ count, of });
  const horizon = chain.step.reduce((last, step) => Math.max(last, step + 1), 0);
  // Steps are 0 … length−1, each once (checked), so the step is the index.
  const rows = new Int32Array(log.reward.length);
  for (let row = 0; row < rows.length; row++) rows[start[of[row]!]! + chain.step[row]!] = row;
  const column = chain.unit ?? episode;
  const units = unitsBy(Int32Array.from({ length: count }, (_, e) => column[rows[start[e]!]!]!));
  return { count, rows, start, horizon, discount: chain.discount, units };
}

/** ρ_t = Π_{s ≤ t} w_s for each index of `episodes.rows`. */
export function runningWeights(log: LoggedDecisions, episodes: Episodes): Float64Array {
  const products = new Float64Array(episodes.rows.length);
  for (let e = 0; e < episodes.count; e++) {
    let product = 1;
    for (let at = episodes.start[e]!; at < episodes.start[e + 1]!; at++) {
      const row = episodes.rows[at]!;
      product *= log.target[row]! / log.behaviour[row]!;
      products[at] = product;
    }
  }
  return products;
}

/** The product of the weights over the whole episode. */
export function episodeWeights(log: LoggedDecisions, episodes: Episodes): Float64Array {
  const running = runningWeights(log, episodes);
  return Float64Array.from({ length: episodes.count }, (_, e) => running[episodes.start[e + 1]! - 1]!);
}

/** γ^t for t < horizon, by repeated multiplication. */
export function discounts(episodes: Episodes): Float64Array {
  const powers = new Float64Array(episodes.horizon);
  let power = 1;
  for (let t = 0; t < powers.length; t++) {
    powers[t] = power;
    power *= episodes.discount;
  }
  return powers;
}

/** Logged return Σ γᵗ·r_t of each episode. */
export function returnsOf(log: LoggedDecisions, episodes: Episodes): Float64Array {
  const gamma = discounts(episodes);
  const returns = new Float64Array(episodes.count);
  for (let e = 0; e < episodes.count; e++) {
    const first = episodes.start[e]!;
    for (let at = first; at < episodes.start[e + 1]!; at++)
      returns[e] = returns[e]! + gamma[at - first]! * log.reward[episodes.rows[at]!]!;
  }
  return returns;
}

function chainOf({ episode, chain }: LoggedDecisions): { episode: Int32Array; chain: Chain } {
  if (chain !== undefined && episode !== undefined) return { episode, chain };
  throw new RollbookError(
    "no-chain",
    {},
    "this estimator is for chains of decisions. Add `episode` and `chain.step`, or use IPS, SNIPS or DR.",
  );
}
