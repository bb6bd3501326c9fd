/** Simulated tasks, where every value is known exactly: learners train on one half of the tasks and are valued on the other.
 *  Offline, CQL, BC and the static table learn from 6 000 logged decisions, one a rollout. Online, PPO routes every turn.
 *  A figure is the share of the gap from the best single model to the optimum of the same kind of routing. */
import type { Rng } from "../../src/base/rng.ts";
import { behaviourRouter, policyOfRouter } from "../../src/collect/sim/play/behaviour.ts";
import { DEFAULT_MODELS } from "../../src/collect/sim/world/models.ts";
import { bestTurnValues, turnEnvironment, turnPolicyValue } from "../../src/collect/sim/world/turns.ts";
import { knownValues, policyValue, type SimWorld } from "../../src/collect/sim/world/world.ts";
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
import { loggedRow } from "../../test/support/chain-world.ts";
import { type JudgePart, type JudgeRow, row } from "../judge/part.ts";
import { twoWorlds } from "../judge/simulator.ts";
import { seedsOf, spread } from "./part.ts";

const SEEDS = 5;
const TASKS = 560;
const DECISIONS = 6000;
const SPEC = { ...DEFAULT_FEATURES, wordBuckets: 128 };
const TURN_SPEC = {
  ...DEFAULT_FEATURES,
  wordBuckets: 256,
  fields: [{ name: "messages", kind: "number" as const }],
};
const MODELS = DEFAULT_MODELS.map(({ name }) => name);
const BEHAVIOUR = policyOfRouter(behaviourRouter("softmax", { models: MODELS, epsilon: 0.3 }));
const CQL = {
  ...{ spec: SPEC, hidden: [64], steps: 500, rate: 1e-3, decay: 3, members: 10, conservatism: 0.002 },
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
    const { best, bestSingle } = knownValues(judging);
    const { best: bestTurn, bestSeen } = bestTurnValues(judging);
    const single = bestSingle.value;
    const once = (value: number) => (value - single) / (best - single);
    const logs = seeds.map((seed) => logOf(learning, DECISIONS, seed.split("log")));
    const values = {
      behaviour: logs.map(() => policyValue(judging, BEHAVIOUR)),
      "static table": logs.map((rows) => tableValue(judging, rows)),
      "neural BC": logs.map((rows, i) =>
        exactValue(judging, trainNeuralBc(dataOf(rows), { spec: SPEC, hidden: [64] }, seeds[i]!).model),
      ),
      CQL: logs.map((rows, i) => exactValue(judging, trainCql(dataOf(rows), CQL, seeds[i]!).model)),
    };
    const turns = seeds.map((seed) => {
      const world = { make: () => turnEnvironment(learning), spec: TURN_SPEC, digest: learning.digest };
      const answer = answerOf(trainPpo(world, PPO, seed).model);
      const value = turnPolicyValue(judging, (context, offered) => answer(context, offered).probabilities);
      return (value - single) / (bestTurn - single);
    });
    const set = `simulator, ${TASKS / 2} held-out tasks`;
    const known = `best single ${single.toFixed(4)}, one decision ${best.toFixed(4)}, every turn ${bestTurn.toFixed(4)}, every turn by what a router sees ${bestSeen.toFixed(4)}`;
    return [
      row(set, "exact optima", known),
      ...Object.entries(values).map(([name, found]) => gapRow(set, name, found.map(once))),
      againstTable(set, values.CQL, values["static table"]),
      gapRow(`${set}, every turn`, "PPO", turns),
      ...ablation(set, { learning, judging, rng, share: once }),
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
  const trained = (conservatism: number) => trainCql(dataOf(rows), { ...CQL, conservatism }, seed).model;
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
  return policyValue(world, (context, candidates) => answer(context, candidates).probabilities);
}

function tableValue(world: SimWorld, rows: readonly LoggedRow[]): number {
  const table = parseStaticTable(JSON.stringify(fitStaticTable({ rows }).source), "the fitted table");
  const router = { table, floor: 0, exploration: 0 };
  return policyValue(world, (context, candidates) => distribution(context, candidates, router).probabilities);
}

function dataOf(rows: readonly LoggedRow[]) {
  return { rows, digest: digestRows(rows) };
}

/** Decisions of the behaviour on tasks at random, each with the outcome of its rollout. */
function logOf(world: SimWorld, decisions: number, rng: Rng): LoggedRow[] {
  return Array.from({ length: decisions }, (_, d): LoggedRow => {
    const task = rng.below(world.tasks.length);
    const context = world.contexts[task]!;
    const shares = BEHAVIOUR(context, world.candidates);
    let left = rng.float();
    let chosen = 0;
    while (chosen < shares.length - 1 && left >= shares[chosen]!) left -= shares[chosen++]!;
    return {
      ...loggedRow({ id: `d${d}`, task: context.prompt, context, chosen }),
      candidates: world.candidates.map((one, c) => ({ ...one, probability: shares[c]! })),
      propensity: shares[chosen]!,
      reward: world.outcomes(task, chosen).outcome(rng.u32()).reward,
    };
  });
}
