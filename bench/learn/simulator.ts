/** Simulated tasks, where every value is known exactly: learners train on one half of the tasks and are valued on the
 *  other. Every seed has its own tasks, so an interval covers worlds, logs and initial weights. Offline, CQL, BC and
 *  the static table learn from 6 000 logged decisions, one per rollout; CQL also from 6 000 decisions at every turn.
 *  Online, PPO routes every turn. A figure is the closed share of the gap from the best single model to the optimum of
 *  the same kind of routing. */
import type { Rng } from "../../src/base/rng.ts";
import { behaviourRouter, policyOfRouter } from "../../src/collect/sim/play/behaviour.ts";
import { DEFAULT_MODELS } from "../../src/collect/sim/world/models.ts";
import { bestTurnValues, turnEnvironment, turnPolicyValue } from "../../src/collect/sim/world/turns.ts";
import { knownValues, type PolicyOf, policyValue, type SimWorld } from "../../src/collect/sim/world/world.ts";
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
  draw,
  type PolicyModel,
  parseStaticTable,
} from "../../src/policy/index.ts";
import { answerOf } from "../../src/policy/policy-of.ts";
import { loggedRow } from "../../test/support/chain-world.ts";
import { type JudgePart, type JudgeRow, row } from "../judge/part.ts";
import { twoWorlds } from "../judge/simulator.ts";
import { meanOf, seedsOf, spread } from "./part.ts";

const SEEDS = 5;
const TASKS = 280;
const DECISIONS = 6000;
const SPEC = { ...DEFAULT_FEATURES, wordBuckets: 256 };
const TURN_SPEC = { ...SPEC, fields: [{ name: "messages", kind: "number" as const }] };
const MODELS = DEFAULT_MODELS.map(({ name }) => name);
const BEHAVIOUR = policyOfRouter(behaviourRouter("softmax", { models: MODELS, epsilon: 0.3 }));
/** The settings of the arm `cql` of suites/routing.yaml. */
const CQL = {
  ...{ spec: SPEC, hidden: [64], steps: 1500, rate: 1e-3, decay: 5, members: 5 },
  ...{ conservatism: 0.002, holdout: 0 },
};
/** A router does not see the test result: the next state shows nothing about a choice, returns do. */
const TURN_CQL = { ...CQL, spec: TURN_SPEC, discount: 1, goal: "return" as const };
const PPO = {
  ...{ steps: 300_000, environments: 16, epochs: 4, batch: 256, discount: 1 },
  ...{ entropy: 0.01, rate: 1e-3 },
};
/** Few decisions, and a penalty large enough to have an effect. */
const LITTLE = 300;
const CAREFUL = 0.5;

interface Known {
  readonly single: number;
  readonly once: number;
  readonly everyTurn: number;
  readonly everyTurnSeen: number;
}

/** Results of one world: its exact values, shares of the gap by learner, and the ablation of the penalty. */
export interface MeasuredWorld {
  readonly known: Known;
  readonly shares: Readonly<Record<string, number>>;
  /** First with the penalty, then without. */
  readonly little: readonly { readonly logged: number; readonly share: number }[];
}

export const simulator: JudgePart = {
  name: "simulator",
  async run({ rng, scale }) {
    const worlds: MeasuredWorld[] = [];
    for (const [i, seed] of seedsOf(rng, Math.max(2, Math.round(SEEDS * scale))).entries())
      worlds.push(await measureWorld(i + 1, seed));
    return simulatorRows(worlds);
  },
};

export async function measureWorld(number: number, seed: Rng): Promise<MeasuredWorld> {
  const [learning, judging] = await twoWorlds(TASKS, number);
  const known = knownOf(judging);
  const share = (best: number) => (value: number) => (value - known.single) / (best - known.single);
  const [once, turned] = [share(known.once), share(known.everyTurn)];
  const shares = [
    ...[...offline(learning, seed)].map(([name, policy]) => [name, once(policyValue(judging, policy))]),
    ...[...everyTurn(learning, seed)].map(([name, policy]) => [
      ...[name, turned(turnPolicyValue(judging, policy))],
    ]),
  ];
  const little = ablation(learning, judging, { seed, share: once });
  return { known, shares: Object.fromEntries(shares), little };
}

export function simulatorRows(worlds: readonly MeasuredWorld[]): JudgeRow[] {
  const set = `simulator, ${worlds.length} worlds of ${TASKS / 2} held-out tasks`;
  const mean = (key: keyof Known) => meanOf(worlds.map(({ known }) => known[key])).toFixed(4);
  const optima = `best single ${mean("single")}, one decision ${mean("once")}, every turn ${mean("everyTurn")}, every turn by what a router sees ${mean("everyTurnSeen")}`;
  const sharesOf = (name: string) => worlds.map(({ shares }) => shares[name]!);
  return [
    row(set, "exact optima, means", optima),
    ...Object.keys(worlds[0]!.shares).map((name) => gapRow(set, name, sharesOf(name))),
    againstTable(set, sharesOf("CQL"), sharesOf("static table")),
    ablationRow(
      set,
      worlds.map(({ little }) => little),
    ),
  ];
}

function knownOf(world: SimWorld): Known {
  const { best, bestSingle } = knownValues(world);
  const { best: everyTurn, bestSeen } = bestTurnValues(world);
  return { single: bestSingle.value, once: best, everyTurn, everyTurnSeen: bestSeen };
}

function* offline(learning: SimWorld, seed: Rng): Generator<[string, PolicyOf]> {
  const rows = logOf(learning, DECISIONS, seed.split("log"));
  yield ["behaviour", BEHAVIOUR];
  yield ["static table", tablePolicy(rows)];
  yield ["neural BC", policyOf(trainNeuralBc(dataOf(rows), { spec: SPEC, hidden: [64] }, seed).model)];
  yield ["CQL", policyOf(trainCql(dataOf(rows), CQL, seed).model)];
}

function* everyTurn(learning: SimWorld, seed: Rng): Generator<[string, PolicyOf]> {
  const rows = turnLogOf(learning, DECISIONS, seed.split("turns"));
  yield ["behaviour, every turn", BEHAVIOUR];
  yield ["CQL, every turn", policyOf(trainCql(dataOf(rows), TURN_CQL, seed).model)];
  const world = { make: () => turnEnvironment(learning), spec: TURN_SPEC, digest: learning.digest };
  yield ["PPO, every turn", policyOf(trainPpo(world, PPO, seed).model)];
}

const BARRED = ["CQL", "PPO, every turn"];

function gapRow(set: string, name: string, shares: readonly number[]): JudgeRow {
  const { text, mean } = spread(shares);
  const each = shares.map((share) => share.toFixed(2)).join(", ");
  const bar = BARRED.includes(name) ? { text: "≥ 0.75", met: mean >= 0.75 } : undefined;
  return row(set, `${name}: share of the gap, 95 % over seeds; by seed`, `${text}; ${each}`, bar);
}

function againstTable(set: string, learned: readonly number[], table: readonly number[]): JudgeRow {
  const { text, low } = spread(learned.map((each, i) => each - table[i]!));
  return row(set, "CQL − fitted static table, paired by seed", text, { text: "> 0", met: low > 0 });
}

/** With little data the penalty must make the policy more careful: it departs less from the logged choices. */
function ablation(
  learning: SimWorld,
  judging: SimWorld,
  { seed, share }: { seed: Rng; share(value: number): number },
): { logged: number; share: number }[] {
  const rows = logOf(learning, LITTLE, seed.split("little"));
  return [CAREFUL, 0].map((conservatism) => {
    const policy = policyOf(trainCql(dataOf(rows), { ...CQL, conservatism }, seed.split("ablation")).model);
    const logged = judging.contexts.map((context) => {
      const asked = BEHAVIOUR(context, judging.candidates);
      return policy(context, judging.candidates).reduce((sum, p, m) => sum + p * asked[m]!, 0);
    });
    return { logged: meanOf(logged), share: share(policyValue(judging, policy)) };
  });
}

function ablationRow(set: string, found: readonly MeasuredWorld["little"][]): JudgeRow {
  const gaps = spread(found.map(([careful, plain]) => careful!.logged - plain!.logged));
  const mean = (arm: number, key: "logged" | "share") => meanOf(found.map((each) => each[arm]![key]));
  const text = [0, 1].map((arm) => mean(arm, "logged").toFixed(3)).join(" and ");
  const earned = [0, 1].map((arm) => mean(arm, "share").toFixed(2)).join(" and ");
  return row(
    set,
    `${LITTLE} decisions, CQL with α = ${CAREFUL} and 0: logged probability of what it chooses; difference`,
    `${text} (share of the gap ${earned}); ${gaps.text}`,
    { text: "> 0", met: gaps.low > 0 },
  );
}

function policyOf(model: PolicyModel): PolicyOf {
  const answer = answerOf(model);
  return (context, candidates) => answer(context, candidates).probabilities;
}

function tablePolicy(rows: readonly LoggedRow[]): PolicyOf {
  const table = parseStaticTable(JSON.stringify(fitStaticTable({ rows }).source), "the fitted table");
  const router = { table, floor: 0, exploration: 0 };
  return (context, candidates) => distribution(context, candidates, router).probabilities;
}

function dataOf(rows: readonly LoggedRow[]) {
  return { rows, digest: digestRows(rows) };
}

/** Decisions of the behaviour policy on random tasks, each with the outcome of its rollout. */
function logOf(world: SimWorld, decisions: number, rng: Rng): LoggedRow[] {
  return Array.from({ length: decisions }, (_, d): LoggedRow => {
    const task = rng.below(world.tasks.length);
    const context = world.contexts[task]!;
    const shares = BEHAVIOUR(context, world.candidates);
    const chosen = draw(shares, rng);
    return {
      ...loggedRow({ id: `d${d}`, task: context.prompt, context, chosen }),
      ...chosenBy(world, shares, chosen),
      reward: world.outcomes(task, chosen).outcome(rng.u32()).reward,
    };
  });
}

/** Rollouts with every turn routed by the behaviour policy, until there are `decisions` decisions. */
function turnLogOf(world: SimWorld, decisions: number, rng: Rng): LoggedRow[] {
  const environment = turnEnvironment(world);
  const rows: LoggedRow[] = [];
  for (let episode = 0; rows.length < decisions; episode++) {
    const draws = rng.split("choices").split(episode);
    let context = environment.reset(rng.split(episode));
    const task = context.prompt;
    for (let step = 0, end = "none"; end === "none"; step++) {
      const shares = BEHAVIOUR(context, world.candidates);
      const chosen = draw(shares, draws);
      const taken = environment.step(chosen);
      rows.push({
        ...loggedRow({ id: `e${episode}/0/${step}`, chain: `e${episode}/0/0`, task, context, chosen }),
        ...chosenBy(world, shares, chosen),
        ...{ reward: taken.reward, terminal: taken.end === "terminal" },
      });
      context = taken.context;
      end = taken.end;
    }
  }
  return rows;
}

function chosenBy(world: SimWorld, shares: readonly number[], chosen: number) {
  const candidates = world.candidates.map((one, c) => ({ ...one, probability: shares[c]! }));
  return { candidates, propensity: shares[chosen]! };
}
