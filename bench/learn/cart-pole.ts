/** CartPole: PPO by acting; BC, CQL and FQE from a log that RLlib recorded. Its episodes end at 200 steps. */
import { digestJson } from "../../src/base/digest.ts";
import type { Rng } from "../../src/base/rng.ts";
import { readLog } from "../../src/book/decisions/read-log.ts";
import {
  digestRows,
  evaluateByFqe,
  type LoggedRow,
  trainCql,
  trainNeuralBc,
  trainPpo,
} from "../../src/learn/index.ts";
import { CART_POLE_SPEC, makeCartPole } from "../../src/learn/neural/cart-pole.ts";
import type { DecisionContext, DecisionEnvironment } from "../../src/policy/index.ts";
import { loggedRow } from "../../test/support/chain-world.ts";
import { dataFile, type JudgeOptions, type JudgePart, type JudgeRow, row } from "../judge/part.ts";
import { meanOf, median, playGreedy, seedsOf } from "./part.ts";

const SEEDS = 5;
const LOG_LIMIT = 200;

export const cartPole: JudgePart = {
  name: "cart-pole",
  run: async ({ rng, scale }) => {
    const world = {
      make: () => makeCartPole(),
      spec: CART_POLE_SPEC,
      digest: digestJson("bench.v1", "cart-pole"),
    };
    const played = seedsOf(rng, Math.max(1, Math.round(SEEDS * scale))).map((seed) =>
      playGreedy(trainPpo(world, { steps: 100_000 }, seed).model, () => makeCartPole(), 20),
    );
    const means = played.map(meanOf);
    const good = played.filter((each) => meanOf(each) >= 475 && Math.max(...each) >= 499).length;
    return [
      row(
        "CartPole, PPO, 100 000 steps",
        "greedy mean of 20 episodes, last checkpoint, by seed",
        means.map((each) => each.toFixed(1)).join(", "),
      ),
      row(
        "CartPole, PPO, 100 000 steps",
        "seeds with mean ≥ 475 and best ≥ 499",
        `${good} of ${means.length}`,
        {
          ...{ text: `${means.length} of ${means.length}`, met: good === means.length },
        },
      ),
    ];
  },
};

export const cartPoleLog: JudgePart = {
  name: "cart-pole-log",
  async run(options) {
    const rows = await loggedSteps(options.data);
    return [...fromLog(rows, options), ...ranking(rows, options)];
  },
};

/** An episode of the log that reaches the limit was truncated; a shorter one ended by a fall. */
async function loggedSteps(data: string): Promise<LoggedRow[]> {
  const file = dataFile(data, "cartpole/cartpole-v1_large.jsonl");
  const rows: LoggedRow[] = [];
  for await (const each of readLog(file, { format: "rllib", dataSource: "real" })) rows.push(each);
  const lengths = new Map<string, number>();
  for (const { chain } of rows) lengths.set(chain, (lengths.get(chain) ?? 0) + 1);
  return rows.map((each, i) => ({
    ...each,
    terminal: rows[i + 1]?.chain !== each.chain && lengths.get(each.chain)! < LOG_LIMIT,
  }));
}

function fromLog(rows: readonly LoggedRow[], { rng, scale }: JudgeOptions): JudgeRow[] {
  const data = { rows, digest: digestRows(rows) };
  const seeds = seedsOf(rng, Math.max(1, Math.round(SEEDS * scale)));
  const learners = {
    BC: (seed: (typeof seeds)[number]) => trainNeuralBc(data, { hidden: [64, 64], steps: 3000 }, seed),
    CQL: (seed: (typeof seeds)[number]) =>
      trainCql(data, { hidden: [64, 64], steps: 6000, discount: 0.99, targetEvery: 200 }, seed),
  };
  return Object.entries(learners).map(([name, train]) => {
    const means = seeds.map((seed) =>
      meanOf(playGreedy(train(seed).model, () => logNames(makeCartPole({ limit: LOG_LIMIT })), 20)),
    );
    const middle = median(means);
    return row(
      `CartPole log, ${rows.length} steps, ${name}`,
      "mean return at the 200-step cap, by seed; median",
      `${means.map((each) => each.toFixed(1)).join(", ")}; ${middle.toFixed(1)}`,
      {
        ...{ text: "≥ 195", met: middle >= 195 },
      },
    );
  });
}

/** Renames observations to obs0 … obs3 and choices to action-0 and action-1, as in the log. */
function logNames(environment: DecisionEnvironment): DecisionEnvironment {
  const renamed = ({ prompt, fields }: ReturnType<DecisionEnvironment["reset"]>) => ({
    prompt,
    fields: Object.fromEntries(Object.values(fields).map((value, i) => [`obs${i}`, value])),
  });
  return {
    candidates: environment.candidates.map((one, i) => ({ ...one, id: `action-${i}` })),
    reset: (rng) => renamed(environment.reset(rng)),
    step(choice) {
      const { context, ...rest } = environment.step(choice);
      return { ...rest, context: renamed(context) };
    },
  };
}

/** Three policies: push towards the falling side, do so half of the time, or push away. FQE must rank them in this
 *  order. The log has one fall in 21 episodes, so it hardly shows the cost of a fall.
 *  A second log of our own has many falls. */
function ranking(rows: readonly LoggedRow[], { rng }: JudgeOptions): JudgeRow[] {
  const own = ownLog(rng.split("own log"));
  return [
    rankingRow(`CartPole log, ${rows.length} steps, FQE`, rows, ["obs2", "obs3"], rng),
    rankingRow(`own CartPole log, ${own.length} steps, FQE`, own, ["angle", "spin"], rng),
  ];
}

function rankingRow(
  set: string,
  rows: readonly LoggedRow[],
  names: readonly [string, string],
  rng: Rng,
): JudgeRow {
  const leaning = (sure: number) => (each: LoggedRow) => leanOf(each.context.fields, names, sure);
  const config = { hidden: [64, 64], steps: 5000, rate: 1e-3, discount: 0.95, targetEvery: 50, refits: 0 };
  const [good, middling, bad] = [0.95, 0.5, 0.05].map(
    (sure) =>
      evaluateByFqe({ rows, digest: digestRows(rows) }, leaning(sure), config, rng.split("fqe")).value,
  ) as [number, number, number];
  const text = [good, middling, bad].map((each) => each.toFixed(2)).join(", ");
  return row(set, "γ = 0.95: value of a good, a middling and a bad policy", text, {
    ...{ text: "falling", met: good > middling && middling > bad },
  });
}

/** [left, right], with `sure` on the side to which the pole falls. */
function leanOf(
  fields: DecisionContext["fields"],
  [angle, spin]: readonly [string, string],
  sure: number,
): number[] {
  const falls = (fields[angle] as number) + 0.5 * (fields[spin] as number) > 0;
  return falls ? [1 - sure, sure] : [sure, 1 - sure];
}

function ownLog(rng: Rng): LoggedRow[] {
  const environment = makeCartPole({ limit: LOG_LIMIT });
  return Array.from({ length: 200 }, (_, e) => {
    const rows: LoggedRow[] = [];
    let context = environment.reset(rng.split(e));
    const draws = rng.split("choices").split(e);
    for (let step = 0, end = "none"; end === "none"; step++) {
      const shares = leanOf(context.fields, ["angle", "spin"], 0.7);
      const chosen = draws.float() < shares[0]! ? 0 : 1;
      const taken = environment.step(chosen);
      rows.push({
        ...loggedRow({
          id: `e${e}/0/${step}`,
          chain: `e${e}/0/0`,
          task: `e${e}`,
          context,
          chosen,
          reward: 1,
        }),
        ...{ propensity: shares[chosen]!, terminal: taken.end === "terminal" },
      });
      context = taken.context;
      end = taken.end;
    }
    return rows;
  }).flat();
}
