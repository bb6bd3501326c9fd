/** Routing at every turn of simulated tasks, where the optimum is known exactly: learners train on one half of the tasks and
 *  are valued, exactly, on the other. A figure is the share of the gap from the best single model to the optimum. */
import type { Rng } from "../../src/base/rng.ts";
import { behaviourRouter, policyOfRouter } from "../../src/collect/sim/play/behaviour.ts";
import { DEFAULT_MODELS } from "../../src/collect/sim/world/models.ts";
import { bestTurnValues, turnEnvironment, turnPolicyValue } from "../../src/collect/sim/world/turns.ts";
import { knownValues, type SimWorld } from "../../src/collect/sim/world/world.ts";
import {
  digestRows,
  fitStaticTable,
  type LoggedRow,
  trainCql,
  trainNeuralBc,
  trainPpo,
} from "../../src/learn/index.ts";
import {
  DEFAULT_FEATURES,
  distribution,
  type PolicyModel,
  parseStaticTable,
} from "../../src/policy/index.ts";
import { answerOf } from "../../src/policy/load-policy.ts";
import { type JudgePart, type JudgeRow, row } from "../judge/part.ts";
import { twoWorlds } from "../judge/simulator.ts";
import { seedsOf, spread } from "./part.ts";

const SEEDS = 5;
const TASKS = 560;
const DECISIONS = 6000;
const SPEC = {
  ...DEFAULT_FEATURES,
  wordBuckets: 256,
  fields: [{ name: "messages", kind: "number" as const }],
};
const MODELS = DEFAULT_MODELS.map(({ name }) => name);
const BEHAVIOUR = policyOfRouter(behaviourRouter("softmax", { models: MODELS, epsilon: 0.5 }));
const CQL = {
  ...{ spec: SPEC, discount: 1, hidden: [64], steps: 4000, rate: 5e-4, decay: 1, members: 3 },
  ...{ targetEvery: 100, conservatism: 0.005 },
};
const PPO = {
  ...{ steps: 400_000, environments: 16, horizon: 128, epochs: 4, discount: 1, trace: 0.95 },
  ...{ entropy: 3e-3, rate: 7e-4 },
};

export const simulator: JudgePart = {
  name: "simulator",
  async run({ rng, scale }) {
    const [learning, judging] = await twoWorlds(TASKS);
    const seeds = seedsOf(rng, Math.max(2, Math.round(SEEDS * scale)));
    const { best, bestSeen } = bestTurnValues(judging);
    const single = knownValues(judging).bestSingle.value;
    const share = (value: number) => (value - single) / (best - single);
    const value = (model: PolicyModel) => exactValue(judging, model);
    const logs = seeds.map((seed) => logOf(learning, DECISIONS, seed.split("log")));
    const values = {
      behaviour: logs.map(() => turnPolicyValue(judging, BEHAVIOUR)),
      "static table": logs.map((rows) => tableValue(judging, rows)),
      "neural BC": logs.map((rows, i) =>
        value(trainNeuralBc(dataOf(rows), { spec: SPEC, hidden: [64] }, seeds[i]!).model),
      ),
      CQL: logs.map((rows, i) => value(trainCql(dataOf(rows), CQL, seeds[i]!).model)),
      PPO: seeds.map((seed) => {
        const world = { make: () => turnEnvironment(learning), spec: SPEC, digest: learning.digest };
        return value(trainPpo(world, PPO, seed).model);
      }),
    };
    const set = `simulator, every turn, ${TASKS / 2} held-out tasks`;
    const known = `best single ${single.toFixed(4)}, optimum ${best.toFixed(4)}, optimum of what a router sees ${bestSeen.toFixed(4)}`;
    return [
      row(set, "exact values", known),
      ...Object.entries(values).map(([name, found]) => gapRow(set, name, found.map(share))),
      againstTable(set, values.CQL, values["static table"]),
      ...ablation(set, { learning, judging, rng, share }),
    ];
  },
};

function gapRow(set: string, name: string, shares: readonly number[]): JudgeRow {
  const { text, mean } = spread(shares);
  const bar = name === "CQL" || name === "PPO" ? { text: "≥ 0.75", met: mean >= 0.75 } : undefined;
  return row(set, `${name}: share of the gap, 95 % over seeds`, text, bar);
}

function againstTable(set: string, learned: readonly number[], table: readonly number[]): JudgeRow {
  const { text, low } = spread(learned.map((each, i) => each - table[i]!));
  return row(set, "CQL − fitted static table, paired by seed", text, { text: "> 0", met: low > 0 });
}

/** With little data the penalty must make the policy more careful: it departs less from what was logged. */
function ablation(
  set: string,
  {
    learning,
    judging,
    rng,
    share,
  }: { learning: SimWorld; judging: SimWorld; rng: Rng; share(value: number): number },
): JudgeRow[] {
  const rows = logOf(learning, 300, rng.split("little"));
  const seed = rng.split("ablation");
  const trained = (conservatism: number) =>
    trainCql(dataOf(rows), { ...CQL, conservatism, steps: 1500 }, seed).model;
  const [careful, plain] = [trained(0.5), trained(0)];
  const logged = (model: PolicyModel): number => {
    const answer = answerOf(model);
    const shares = judging.contexts.map((context) => {
      const asked = BEHAVIOUR(context, judging.candidates);
      return answer(context, judging.candidates).probabilities.reduce((sum, p, m) => sum + p * asked[m]!, 0);
    });
    return shares.reduce((sum, each) => sum + each, 0) / shares.length;
  };
  const [a, b] = [logged(careful), logged(plain)];
  const text = `${a.toFixed(3)} and ${b.toFixed(3)} (share of the gap ${share(exactValue(judging, careful)).toFixed(2)} and ${share(exactValue(judging, plain)).toFixed(2)})`;
  return [
    row(set, "300 decisions, CQL and without penalty: logged probability of what it chooses", text, {
      ...{ text: "CQL higher", met: a > b },
    }),
  ];
}

function exactValue(world: SimWorld, model: PolicyModel): number {
  const answer = answerOf(model);
  return turnPolicyValue(world, (context, candidates) => answer(context, candidates).probabilities);
}

function tableValue(world: SimWorld, rows: readonly LoggedRow[]): number {
  const { source } = fitStaticTable({ rows: withReturns(rows) });
  const table = parseStaticTable(JSON.stringify(source), "the fitted table");
  return turnPolicyValue(
    world,
    (context, candidates) =>
      distribution(context, candidates, { table, floor: 0, exploration: 0 }).probabilities,
  );
}

/** A table knows single decisions: each is credited with what its episode earned. */
function withReturns(rows: readonly LoggedRow[]): LoggedRow[] {
  const earned = new Map<string, number>();
  for (const { chain, reward } of rows) earned.set(chain, (earned.get(chain) ?? 0) + reward!);
  return rows.map((each) => ({ ...each, reward: earned.get(each.chain)! }));
}

function dataOf(rows: readonly LoggedRow[]) {
  return { rows, digest: digestRows(rows) };
}

/** Episodes of the behaviour, asked at every turn, until there are so many decisions. */
function logOf(world: SimWorld, decisions: number, rng: Rng): LoggedRow[] {
  const environment = turnEnvironment(world);
  const rows: LoggedRow[] = [];
  for (let e = 0; rows.length < decisions; e++) {
    let context = environment.reset(rng.split("task").split(e));
    const draws = rng.split("choice").split(e);
    for (let step = 0, end = "none"; end === "none"; step++) {
      const shares = BEHAVIOUR(context, world.candidates);
      let left = draws.float();
      let chosen = 0;
      while (chosen < shares.length - 1 && left >= shares[chosen]!) left -= shares[chosen++]!;
      const taken = environment.step(chosen);
      rows.push({
        ...{
          id: `e${e}/0/${step}`,
          chain: `e${e}/0/0`,
          task: context.prompt,
          session: `e${e}`,
          family: "bench",
        },
        ...{
          atMs: 0,
          source: "synthetic",
          context,
          chosen,
          propensity: shares[chosen]!,
          reward: taken.reward,
        },
        candidates: world.candidates.map((one, c) => ({ ...one, probability: shares[c]! })),
        ...{ terminal: taken.end === "terminal", terms: {}, rewardFrom: "bench" },
      });
      context = taken.context;
      end = taken.end;
    }
  }
  return rows;
}
