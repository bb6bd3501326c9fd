/** Fitted Q evaluation: the value of a policy, by a network that learns it from the log of another policy.
 *    Q(s, a) ← r + γ · Σ_a′ π(a′ | s′) · Q̄(s′, a′)   with Huber's loss;
 *    V = mean over episodes of Σ_a π(a | s₀) · Q(s₀, a).
 *  In: logged rows, the policy's distribution at each row, a config, an Rng. Out: the value, with an interval from fits
 *  on resampled episodes. Needs no propensities. The interval covers the network's error only in part. */
import { type Rng, RollbookError } from "../../base/index.ts";
import { type FeatureSpec, mlpMembers } from "../../policy/index.ts";
import { type LoggedRow, requireWholeChains, rowsByChain } from "../rows/index.ts";
import { CQL_DEFAULTS, type CqlConfig, makeQLearner } from "./cql.ts";
import { neuralSpec } from "./setup.ts";
import { type LoggedData, rowsInMemory, trainNetwork } from "./train-network.ts";
import { orderedTransitions } from "./transitions.ts";
import { runNow } from "./work.ts";

interface FqeConfig extends Omit<CqlConfig, "conservatism" | "members" | "patience" | "wide"> {
  /** Number of fits on resampled episodes for the interval; 0 for no interval. */
  readonly refits?: number;
  readonly level?: number;
}

/** The probabilities of the judged policy, one per candidate of the row. */
type JudgedPolicy = (row: LoggedRow) => readonly number[];

interface FittedValue {
  readonly value: number;
  readonly episodes: number;
  /** Percentiles over the fits on resampled episodes. */
  readonly interval?: { readonly low: number; readonly high: number; readonly level: number };
  readonly refits: readonly number[];
}

export function evaluateByFqe(
  data: LoggedData,
  target: JudgedPolicy,
  config: FqeConfig,
  rng: Rng,
): FittedValue {
  const { refits = 20, level = 0.95, spec = neuralSpec(data.rows), ...given } = config;
  const options = { ...given, spec };
  const episodes = episodesOf(data.rows);
  const value = fitValue(data, { target, options, rng: rng.split("fit") });
  const draws = Array.from({ length: refits }, (_, i) => {
    const draw = rng.split("refit").split(i);
    const rows = Array.from(episodes, (_each, copy) => renamed(episodes[draw.below(episodes.length)]!, copy));
    return fitValue({ ...data, rows: rows.flat() }, { target, options, rng: draw });
  }).sort((a, b) => a - b);
  const at = (share: number) => draws[Math.round(share * (draws.length - 1))]!;
  return {
    ...{ value, episodes: episodes.length, refits: draws },
    ...(refits === 0 ? {} : { interval: { low: at((1 - level) / 2), high: at((1 + level) / 2), level } }),
  };
}

function fitValue(
  data: LoggedData,
  { target, options, rng }: { target: JudgedPolicy; options: CqlConfig & { spec: object }; rng: Rng },
): number {
  const all = { ...CQL_DEFAULTS, discount: 0.99, holdout: 0, ...options, conservatism: 0, members: 1 };
  const { arms, shares, first } = sharesOf(data.rows, target, all.spec as never);
  const bounds = returnBounds(data.rows, all.discount);
  const work = trainNetwork(rowsInMemory(data), {
    ...{ algorithm: "fqe", kind: "mlp-greedy", options: all, chained: all.discount > 0, rng, hooks: {} },
    member: (space, parts) =>
      makeQLearner(space, {
        ...{ ...parts, options: all },
        target: ({ row, target: values }) =>
          Math.min(bounds.high, Math.max(bounds.low, dot(shares, row * arms, values))),
      }),
  });
  const { model } = runNow(work);
  const [forward] = mlpMembers(model);
  const total = first.reduce((sum, { row, state }) => sum + dot(shares, row * arms, forward!(state)), 0);
  return total / first.length;
}

/** Bounds on the value of a state: the largest and the smallest reward, for ever. They stop values that diverge where
 *  the log has no rows. */
function returnBounds(rows: readonly LoggedRow[], discount: number): { low: number; high: number } {
  const bounds = rows.reduce(
    ({ low, high }, { reward }) => ({ low: Math.min(low, reward ?? 0), high: Math.max(high, reward ?? 0) }),
    { low: 0, high: 0 },
  );
  const most = discount < 1 ? 1 / (1 - discount) : Number.POSITIVE_INFINITY;
  return { low: bounds.low === 0 ? 0 : bounds.low * most, high: bounds.high === 0 ? 0 : bounds.high * most };
}

/** π as a matrix over rows and arms in the order of the transitions, and the first row of each episode. */
function sharesOf(rows: readonly LoggedRow[], target: JudgedPolicy, spec: FeatureSpec) {
  const { transitions, ordered, sparse } = orderedTransitions(rows, spec);
  const { arms, next } = transitions;
  const places = new Map(arms.map((id, a) => [id, a]));
  const shares = new Float64Array(ordered.length * arms.length);
  for (const [r, row] of ordered.entries())
    for (const [c, share] of target(row).entries())
      shares[r * arms.length + places.get(row.candidates[c]!.id)!] = share;
  const follows = new Set(next);
  const first = ordered.flatMap((_, row) => {
    if (follows.has(row)) return [];
    const [from, to] = [sparse.start[row]!, sparse.start[row + 1]!];
    const [indices, values] = [sparse.indices.subarray(from, to), sparse.values.subarray(from, to)];
    return [{ row, state: { indices, values, count: to - from } }];
  });
  return { arms: arms.length, shares, first };
}

function dot(shares: Float64Array, at: number, values: ArrayLike<number>): number {
  let sum = 0;
  for (let a = 0; a < values.length; a++) if (shares[at + a]! > 0) sum += shares[at + a]! * values[a]!;
  return sum;
}

function episodesOf(rows: readonly LoggedRow[]): LoggedRow[][] {
  requireWholeChains(rows, "decision");
  const chains = rowsByChain(rows);
  if (chains.size < 2)
    throw new RollbookError(
      "too-few-units",
      { episodes: chains.size },
      `${chains.size} episodes cannot be resampled. Log at least 2.`,
    );
  return [...chains.values()];
}

/** Renames a copy of an episode, so that it counts as a separate episode. */
function renamed(episode: readonly LoggedRow[], copy: number): LoggedRow[] {
  return episode.map((row) => ({
    ...row,
    id: `${copy}:${row.id}`,
    chain: `${copy}:${row.chain}`,
    task: `${copy}:${row.task}`,
  }));
}
