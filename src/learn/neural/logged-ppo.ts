/** Proximal policy optimisation from a log of single decisions: PPO acts in an environment made of the logged rows.
 *  Choice a in row i earns the doubly robust score m_a + [a was chosen] · (r_i − m_a) / p_i. m_a is the mean reward of
 *  a, and p_i the logged probability. Its expectation over the logged choices is the reward of a in that row, for any
 *  m_a. In: rows with outcomes and probabilities, a config, an Rng. Out: the model of `trainPpo`. */
import { type Rng, RollbookError } from "../../base/index.ts";
import type { DecisionEnvironment, FeatureSpec } from "../../policy/index.ts";
import { type LoggedRow, labelledRows } from "../rows/index.ts";
import type { FitHooks } from "./fit.ts";
import { type PpoConfig, type PpoTrained, trainPpo } from "./ppo.ts";
import { neuralSpec } from "./setup.ts";
import type { LoggedData } from "./train-network.ts";

export interface LoggedPpoConfig extends Omit<PpoConfig, "discount" | "trace"> {
  readonly spec?: FeatureSpec | undefined;
}

/** A log is small: a wide network or a long training would memorise its rows. */
const LOGGED_PPO_DEFAULTS = {
  hidden: [32] as readonly number[],
  ...{ steps: 16_000, horizon: 32, batch: 256, epochs: 10, rate: 3e-3, entropy: 0.01 },
  // No effect on single decisions.
  ...{ discount: 0.98, trace: 0.8 },
};

export function trainLoggedPpo(
  data: LoggedData,
  { spec = neuralSpec(data.rows), ...config }: LoggedPpoConfig,
  rng: Rng,
  hooks: FitHooks = {},
): PpoTrained {
  const rows = labelledRows(data.rows);
  const scores = scoresOf(rows);
  const candidates = rows[0]!.candidates.map(({ probability: _, outcome: __, ...each }) => each);
  const make = (): DecisionEnvironment => {
    let row = 0;
    return {
      candidates,
      reset(draws) {
        row = draws.below(rows.length);
        return rows[row]!.context;
      },
      step: (choice) => ({ reward: scores[row]![choice]!, context: rows[row]!.context, end: "terminal" }),
    };
  };
  return trainPpo(
    { make, spec, digest: data.digest, recurring: true },
    { ...LOGGED_PPO_DEFAULTS, ...config },
    rng,
    hooks,
  );
}

function scoresOf(rows: readonly (LoggedRow & { reward: number })[]): number[][] {
  const [first] = rows;
  const arms = first!.candidates.map(({ id }) => id);
  const sums = arms.map(() => ({ reward: 0, rows: 0 }));
  let [all, count] = [0, 0];
  for (const row of rows) {
    requireLogged(row, arms);
    sums[row.chosen]!.reward += row.reward;
    sums[row.chosen]!.rows++;
    all += row.reward;
    count++;
  }
  const means = sums.map((arm) => (arm.rows === 0 ? all / count : arm.reward / arm.rows));
  return rows.map(({ chosen, reward, propensity }) =>
    means.map((mean, arm) => (arm === chosen ? mean + (reward - mean) / propensity! : mean)),
  );
}

/** Requires the same candidates in the same order in every row: PPO has one output per candidate. */
function requireLogged({ id, candidates, propensity }: LoggedRow, arms: readonly string[]): void {
  const same = candidates.length === arms.length && candidates.every((each, i) => each.id === arms[i]);
  if (same && propensity !== null) return;
  throw new RollbookError(
    "bad-training-data",
    { id },
    propensity === null
      ? `row ${id}: the probability of its choice was not logged, and PPO weighs by it. Leave the row out.`
      : `row ${id}: its candidates are not ${arms.join(", ")}. PPO learns from rows with the same candidates in the same order.`,
  );
}
