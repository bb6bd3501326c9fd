/** DR compared with SNIPS on the same logs, and the coverage of DR's interval: UCI sets with their raw features at
 *  three sizes, and a world whose rewards a linear model can learn. One part for each: `--only uci-optdigits-300`. */
import type { Json } from "../../src/base/canonical-json.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import {
  correctedInterval,
  crossFitRewards,
  diagnose,
  doublyRobust,
  type LoggedDecisions,
  snips,
  supportFaults,
} from "../../src/judge/ope/index.ts";
import { asBandit, loadMulticlass, multiclassValue } from "../support/judge/uci-multiclass.ts";
import { twoPolicies } from "../support/judge/uci-policies.ts";
import { dataFile, type JudgeOptions, type JudgePart, type JudgeRow, row } from "./part.ts";

const LOGS = 1000;
const SETS = ["optdigits", "satimage"];
const SIZES = [300, 1000, 3000];

export const drAndSnips: readonly JudgePart[] = [
  ...SETS.flatMap((name) => SIZES.map((size) => ({ name: `uci-${name}-${size}`, run: uciPart(name, size) }))),
  { name: "informative-model", run: informative },
];

function uciPart(name: string, size: number): JudgePart["run"] {
  return async (options) => {
    const { held, policies } = twoPolicies(
      await loadMulticlass(dataFile(options.data, `uci/${name}.data`)),
      "raw",
    );
    const rows = held.label.length;
    return paired(`UCI ${name}, n = ${size}`, options, {
      truth: multiclassValue(held, policies.target),
      ratio: size < 1000 ? 1.1 : 1.05,
      make: (rng) => {
        const sample = Int32Array.from({ length: size }, () => rng.below(rows));
        return asBandit(held, { ...policies, rows: sample, rng });
      },
    });
  };
}

interface PairedWorld {
  readonly truth: number;
  /** The largest allowed RMSE of DR, as a multiple of the RMSE of SNIPS. */
  readonly ratio: number;
  readonly make: (rng: Rng) => LoggedDecisions;
}

interface PairedTrial {
  readonly dr: number;
  readonly snips: number;
  /** True if the interval of DR contains the truth. */
  readonly held: boolean;
}

function paired(set: string, { rng, scale, trials }: JudgeOptions, world: PairedWorld): JudgeRow[] {
  const { truth, ratio, make } = world;
  const logs = Math.max(10, Math.round(LOGS * scale));
  const named = `${set}, ${logs} logs`;
  // Null: refused.
  const found = trials.all<(PairedTrial & Record<string, Json>) | null>(set, logs, (log) => {
    const draw = rng.split(`${set} ${log}`);
    const decisions = make(draw);
    if (supportFaults(diagnose(decisions)).length > 0) return null;
    const dr = doublyRobust(decisions, crossFitRewards(decisions, { rng: draw.split("model") }));
    const { low, high } = correctedInterval(dr);
    const errors = { dr: dr.value - truth, snips: snips(decisions).value - truth };
    return { ...errors, held: low <= truth && truth <= high };
  });
  if (found === undefined) return [row(named, "not complete", "run it again with the same --trials")];
  const errors = found.filter((each) => each !== null);
  const refused = logs - errors.length;
  const share = rmse(errors, "dr") / rmse(errors, "snips");
  const covered = errors.filter(({ held }) => held).length / errors.length;
  return [
    row(named, "RMSE of DR over that of SNIPS", `${share.toFixed(3)} ± ${errorOf(errors).toFixed(3)}`, {
      text: `≤ ${ratio}`,
      met: share <= ratio,
    }),
    row(named, "coverage of DR, corrected Student-t, %", (100 * covered).toFixed(1), {
      text: "≥ 93",
      met: covered >= 0.93,
    }),
    row(named, "refused, %", ((100 * refused) / logs).toFixed(1)),
  ];
}

type Errors = readonly { dr: number; snips: number }[];

function rmse(errors: Errors, which: "dr" | "snips"): number {
  return Math.sqrt(errors.reduce((sum, each) => sum + each[which] ** 2, 0) / errors.length);
}

/** The standard error of the ratio, from resampled logs. */
function errorOf(errors: Errors): number {
  const rng = rngFrom(1);
  const draws = Array.from({ length: 200 }, () => {
    const again = errors.map(() => errors[rng.below(errors.length)]!);
    return rmse(again, "dr") / rmse(again, "snips");
  });
  const mean = draws.reduce((sum, each) => sum + each, 0) / draws.length;
  return Math.sqrt(draws.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (draws.length - 1));
}

const WIDTH = 4;
const ARMS = 3;
const LOG_ROWS = 1000;

/** Rewards are linear in four features, one direction for each of three candidates, with little noise. */
async function informative(options: JudgeOptions): Promise<JudgeRow[]> {
  const best = (x: Float64Array, at: number) => {
    let top = 0;
    for (let a = 1; a < ARMS; a++) if (x[at + a]! > x[at + top]!) top = a;
    return top;
  };
  // E max of three standard normals, by their order statistics: 3 / (2√π).
  const truth = 3 / (2 * Math.sqrt(Math.PI));
  const make = (rng: Rng): LoggedDecisions => {
    const values = Float64Array.from({ length: LOG_ROWS * WIDTH }, () => normal(rng));
    const chosen = Int32Array.from({ length: LOG_ROWS }, () => rng.below(ARMS));
    const target = new Float64Array(LOG_ROWS * ARMS);
    for (let i = 0; i < LOG_ROWS; i++) target[i * ARMS + best(values, i * WIDTH)] = 1;
    return {
      reward: Float64Array.from(chosen, (a, i) => values[i * WIDTH + a]! + 0.5 * normal(rng)),
      behaviour: new Float64Array(LOG_ROWS).fill(1 / ARMS),
      target: Float64Array.from(chosen, (a, i) => target[i * ARMS + a]!),
      candidates: { count: ARMS, chosen, target },
      context: { width: WIDTH, values },
    };
  };
  return paired(`linear rewards, n = ${LOG_ROWS}`, options, { truth, ratio: 0.9, make });
}

function normal(rng: Rng): number {
  return Math.sqrt(-2 * Math.log(1 - rng.float())) * Math.cos(2 * Math.PI * rng.float());
}
