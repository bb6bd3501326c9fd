/** The judge in the simulator, where the value of every policy is known exactly: coverage of estimates over many logs,
 *  behaviour cloning compared with the cloned behaviour, and LinUCB compared with the static table fitted to the same
 *  log. Policies learn on one half of the tasks and are valued on the other half,
 *  which policies and table have not seen. */
import { digestJson } from "../../src/base/digest.ts";
import type { Rng } from "../../src/base/rng.ts";
import { openSandbox } from "../../src/collect/sandbox/index.ts";
import { FAMILIES } from "../../src/collect/sim/families/index.ts";
import { behaviourRouter, policyOfRouter } from "../../src/collect/sim/play/behaviour.ts";
import { generateTasks } from "../../src/collect/sim/prove/generate.ts";
import { proveTask } from "../../src/collect/sim/prove/prove.ts";
import { DEFAULT_MODELS } from "../../src/collect/sim/world/models.ts";
import type { ProvedTask } from "../../src/collect/sim/world/outcomes.ts";
import {
  knownValues,
  makeWorld,
  type PolicyOf,
  policyValue,
  type SimWorld,
} from "../../src/collect/sim/world/world.ts";
import {
  bootstrap,
  crossFitRewards,
  doublyRobust,
  type Interval,
  ips,
  type LoggedDecisions,
  percentileInterval,
  snips,
  studentInterval,
  studentQuantile,
} from "../../src/judge/ope/index.ts";
import { type DecisionData, fitStaticTable, trainBc } from "../../src/learn/index.ts";
import {
  answerOf,
  DEFAULT_FEATURES,
  makeFeatureReader,
  type PolicyModel,
  parseStaticTable,
} from "../../src/policy/index.ts";
import { trainLinUcb } from "../../test/support/train-bandits.ts";
import { type DecisionLog, makeDecisionLog, targetColumns } from "../support/decision-log.ts";
import { type JudgeOptions, type JudgePart, type JudgeRow, row } from "./part.ts";

const TASKS = 280;
const LOGS = 200;
const DECISIONS = 2000;
const TRAINING_LOGS = 20;
const TRAINING_DECISIONS = 6000;
/** Few enough buckets for a dense model. */
const SPEC = { ...DEFAULT_FEATURES, wordBuckets: 64 };
const MODELS = DEFAULT_MODELS.map(({ name }) => name);
/** Prefers expensive models for long prompts; every model has a share of at least 0.3 / 5. */
const BEHAVIOUR = policyOfRouter(behaviourRouter("softmax", { models: MODELS, epsilon: 0.3 }));

export const simulator: JudgePart = {
  name: "simulator",
  async run(options) {
    const [learning, judging] = await twoWorlds();
    return [
      ...known(judging),
      ...coverage(judging, linUcbOf(trainingLog(learning, options.rng.split("target"))), options),
      ...cloning(learning, judging, options),
      ...contest(learning, judging, options),
    ];
  },
};

function known(world: SimWorld): JudgeRow[] {
  const { best, bestSingle, uniform } = knownValues(world);
  const set = `simulator, ${world.tasks.length} tasks`;
  const values = {
    best,
    [bestSingle.model]: bestSingle.value,
    even: uniform,
    log: policyValue(world, BEHAVIOUR),
  };
  const text = Object.entries(values).map(([name, value]) => `${name} ${value.toFixed(4)}`);
  return [row(set, "exact values: best, best single, even, behaviour", text.join(", "))];
}

/** Coverage of the 95 % intervals for the exact value of a learned policy, and of a uniform choice. */
function coverage(world: SimWorld, learned: PolicyOf, { rng, scale }: JudgeOptions): JudgeRow[] {
  const logs = Math.max(20, Math.round(LOGS * scale));
  const even: PolicyOf = (_, candidates) => candidates.map(() => 1 / candidates.length);
  return Object.entries({ LinUCB: learned, "an even choice": even }).flatMap(([name, policy]) => {
    const hits = new Map<string, number>();
    for (let i = 0; i < logs; i++) {
      const draw = rng.split(`${name} ${i}`);
      const { log, value } = judged(world, { policy, decisions: DECISIONS, rng: draw });
      for (const [key, { low, high }] of intervalsOf(log, draw))
        hits.set(key, (hits.get(key) ?? 0) + (low <= value && value <= high ? 1 : 0));
    }
    const set = `simulator, ${logs} logs of ${DECISIONS}`;
    return [...hits].map(([key, count]) => {
      const share = (100 * count) / logs;
      return row(set, `value of ${name}, coverage %, ${key}`, share.toFixed(1), {
        text: "≥ 93",
        met: share >= 93,
      });
    });
  });
}

function intervalsOf(log: LoggedDecisions, rng: Rng): [string, Interval][] {
  const estimates = [ips(log), snips(log), doublyRobust(log, crossFitRewards(log, { rng }))];
  const draws = bootstrap(estimates, { rng: rng.split("bootstrap") });
  return estimates.flatMap((estimate, i): [string, Interval][] => [
    [`${estimate.name} bootstrap`, percentileInterval(draws[i]!)],
    [`${estimate.name} student-t`, studentInterval(estimate)],
  ]);
}

/** A clone of the behaviour, estimated on an unseen log: its interval must contain the behaviour's exact value. */
function cloning(learning: SimWorld, judging: SimWorld, { rng }: JudgeOptions): JudgeRow[] {
  const policy = cloneOf(trainingLog(learning, rng.split("clone")));
  const { log, value } = judged(judging, { policy, decisions: 10_000, rng: rng.split("clone log") });
  const estimate = snips(log);
  const { low, high } = studentInterval(estimate);
  const behaviour = policyValue(judging, BEHAVIOUR);
  const set = "simulator, BC";
  const text = `${estimate.value.toFixed(4)} [${low.toFixed(4)}, ${high.toFixed(4)}]`;
  return [
    row(set, "value by SNIPS, 95 %", text, {
      text: `holds behaviour's ${behaviour.toFixed(4)}`,
      met: low <= behaviour && behaviour <= high,
    }),
    row(set, "exact value, and minus behaviour's", `${value.toFixed(4)}, ${(value - behaviour).toFixed(4)}`),
  ];
}

/** Exact values of LinUCB and of the static table over many training logs; the interval is over the logs. */
function contest(learning: SimWorld, judging: SimWorld, { rng, scale }: JudgeOptions): JudgeRow[] {
  const logs = Math.max(5, Math.round(TRAINING_LOGS * scale));
  const values = Array.from({ length: logs }, (_, i) => {
    const data = trainingLog(learning, rng.split(`contest ${i}`));
    return { linucb: policyValue(judging, linUcbOf(data)), table: policyValue(judging, tableOf(data)) };
  });
  const gaps = values.map(({ linucb, table }) => linucb - table);
  const gap = mean(gaps);
  const error = Math.sqrt(mean(gaps.map((each) => (each - gap) ** 2)) / (logs - 1));
  const half = studentQuantile(0.975, logs - 1) * error;
  const set = `simulator, ${logs} training logs of ${TRAINING_DECISIONS}`;
  const both = `${mean(values.map((each) => each.linucb)).toFixed(4)}, ${mean(values.map((each) => each.table)).toFixed(4)}`;
  return [
    row(set, "exact value of LinUCB, of the fitted static table", both),
    row(
      set,
      "  LinUCB minus table, 95 %",
      `${gap.toFixed(4)} [${(gap - half).toFixed(4)}, ${(gap + half).toFixed(4)}]`,
      {
        text: "whole band > 0",
        met: gap - half > 0,
      },
    ),
  ];
}

/** A log of the behaviour with the columns for an estimate of `policy`, and the policy's exact value. */
function judged(world: SimWorld, options: { policy: PolicyOf; decisions: number; rng: Rng }) {
  const { policy, decisions, rng } = options;
  const made = makeDecisionLog(world, { behaviour: BEHAVIOUR, decisions, rng });
  const { target, all, value } = targetColumns(made, policy);
  const log: LoggedDecisions = {
    reward: made.reward,
    behaviour: made.propensity,
    target,
    candidates: { count: MODELS.length, chosen: made.chosen, target: all, behaviour: made.behaviour },
    context: contextOf(made),
  };
  return { log, value };
}

/** The dense features of each row's question. */
function contextOf({ world, task }: DecisionLog): NonNullable<LoggedDecisions["context"]> {
  const reader = makeFeatureReader(SPEC);
  const width = reader.size;
  const byTask = world.contexts.map((context) => {
    const dense = new Float64Array(width);
    const { indices, values, count } = reader.context(context);
    for (let e = 0; e < count; e++) dense[indices[e]!] = values[e]!;
    return dense;
  });
  const values = new Float64Array(task.length * width);
  task.forEach((each, r) => {
    values.set(byTask[each]!, r * width);
  });
  return { width, values };
}

function trainingLog(world: SimWorld, rng: Rng): DecisionData {
  return trainingData(makeDecisionLog(world, { behaviour: BEHAVIOUR, decisions: TRAINING_DECISIONS, rng }));
}

function linUcbOf(data: DecisionData): PolicyOf {
  return policyOfModel(trainLinUcb(data, { spec: SPEC }));
}

function cloneOf(data: DecisionData): PolicyOf {
  return policyOfModel(trainBc(data, { spec: SPEC, seed: 1n }).model);
}

function tableOf(data: DecisionData): PolicyOf {
  const table = parseStaticTable(JSON.stringify(fitStaticTable(data).source), "fitted");
  return policyOfRouter({ table, floor: 0, exploration: 0 });
}

function trainingData({ world, task, chosen, propensity, reward }: DecisionLog): DecisionData {
  const rows = Array.from(task, (each, i) => ({
    id: `d-${i}`,
    context: world.contexts[each]!,
    candidates: world.candidates,
    chosen: chosen[i]!,
    propensity: propensity[i]!,
    reward: reward[i]!,
  }));
  return { rows, digest: digestJson("bench.sim-log", rows.length) };
}

function policyOfModel(model: PolicyModel): PolicyOf {
  const answer = answerOf(model);
  return (context, candidates) => answer(context, candidates).probabilities;
}

/** Tasks of every JavaScript family, proved in QuickJS: two halves with the same families and difficulties. */
export async function twoWorlds(count = TASKS, seed = 1): Promise<[SimWorld, SimWorld]> {
  const sandbox = await openSandbox({ engine: "quickjs", workers: 2 });
  try {
    const families = FAMILIES.filter(({ language }) => language === "javascript");
    const halves: [ProvedTask[], ProvedTask[]] = [[], []];
    const tasks = generateTasks({
      count,
      seed,
      families,
      parallel: 2,
      prove: (task) => proveTask(task, sandbox),
    });
    // Families and difficulties alternate: one run of all of them goes to one half, the next run to the other.
    let index = 0;
    for await (const { task, proof } of tasks)
      halves[Math.floor(index++ / (families.length * 5)) % 2]!.push({ task, proof: proof! });
    return halves.map((half) => makeWorld({ tasks: half, models: DEFAULT_MODELS })) as [SimWorld, SimWorld];
  } finally {
    await sandbox.close();
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}
