/** Coverage on UCI sets turned into bandits, where the truth is known exactly.
 *  Rows of the held-out half are the population. Each repetition draws rows from it with replacement, lets the logging
 *  policy act, and checks if the 95 % intervals contain the population's value. */
import {
  bernsteinInterval,
  bootstrap,
  confidenceSequence,
  crossFitRewards,
  doublyRobust,
  hoeffdingInterval,
  type Interval,
  ips,
  type LoggedDecisions,
  percentileInterval,
  snips,
  studentInterval,
} from "../../src/judge/ope/index.ts";
import { weightedRange } from "../../test/ope/weighted-range.ts";
import { asBandit, loadMulticlass, multiclassValue } from "../support/judge/uci-multiclass.ts";
import { EXPLORATION, twoPolicies } from "../support/judge/uci-policies.ts";
import { between, dataFile, type JudgeOptions, type JudgePart, type JudgeRow, row } from "./part.ts";

const REPETITIONS = 2000;
const SETS = ["optdigits", "satimage"];

export const uciCoverage: JudgePart = {
  name: "uci-coverage",
  async run(options) {
    const rows: JudgeRow[] = [];
    for (const name of SETS) rows.push(...(await coverageOn(name, options)));
    return rows;
  },
};

async function coverageOn(name: string, { data, rng, scale }: JudgeOptions): Promise<JudgeRow[]> {
  const all = await loadMulticlass(dataFile(data, `uci/${name}.data`));
  const { held, policies } = twoPolicies(all);
  const truth = multiclassValue(held, policies.target);
  const rows = held.label.length;
  const repetitions = Math.max(20, Math.round(REPETITIONS * scale));
  const hits = new Map<string, number>();
  for (let repetition = 0; repetition < repetitions; repetition++) {
    const draw = rng.split(`${name} ${repetition}`);
    const sample = Int32Array.from({ length: rows }, () => draw.below(rows));
    const log = asBandit(held, { ...policies, rows: sample, rng: draw });
    for (const [key, { low, high }] of intervalsOf(log, draw, held.classes.length))
      hits.set(key, (hits.get(key) ?? 0) + (low <= truth && truth <= high ? 1 : 0));
  }
  return [...hits].map(([key, count]) => {
    const share = (100 * count) / repetitions;
    const exact = key.endsWith("bootstrap") || key.endsWith("student-t");
    const bar = exact ? between(share, 93.5, 96.5) : { text: "≥ 95", met: share >= 95 };
    return row(`UCI ${name}, n = ${rows}, ${repetitions} logs`, `coverage %, ${key}`, share.toFixed(2), bar);
  });
}

function intervalsOf(log: LoggedDecisions, rng: JudgeOptions["rng"], classes: number): [string, Interval][] {
  const weighted = ips(log);
  const estimates = [weighted, snips(log), doublyRobust(log, crossFitRewards(log, { rng }))];
  const draws = bootstrap(estimates, { rng: rng.split("bootstrap") });
  const range = weightedRange({ reward: { low: 0, high: 1 }, floor: EXPLORATION / classes });
  return [
    ...estimates.flatMap((estimate, i): [string, Interval][] => [
      [`${estimate.name} bootstrap`, percentileInterval(draws[i]!)],
      [`${estimate.name} student-t`, studentInterval(estimate)],
    ]),
    ["IPS hoeffding", hoeffdingInterval(weighted, { range })],
    ["IPS empirical-bernstein", bernsteinInterval(weighted, { range })],
    ["IPS confidence-sequence", confidenceSequence(weighted, { range })],
  ];
}
