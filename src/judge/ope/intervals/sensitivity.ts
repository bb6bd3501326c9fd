/** The effect of hidden bias on the answer: the marginal sensitivity model (Tan, 2006).
 *  True and assumed odds of the chosen action may differ by a factor Γ, so  1/e ∈ 1 + (1/ê − 1)·[1/Γ, Γ].
 *  The bounds of SNIPS over all such propensities are a fractional linear program that sorting solves
 *  (Zhao, Small and Bhattacharya, 2019). Γ = 1 means no hidden bias. */
import { RollbookError } from "../../../base/index.ts";
import { type Estimate, ratioOverUnits } from "../estimators/index.ts";
import { type LoggedDecisions, outcomeWidth, unitsOf } from "../log/index.ts";
import { correctedInterval } from "./corrected-interval.ts";

export interface SensitivityBound {
  readonly gamma: number;
  /** SNIPS can take any value from `low` to `high`. */
  readonly low: number;
  readonly high: number;
  /** `low` and `high` with sampling error on either side. */
  readonly intervalLow: number;
  readonly intervalHigh: number;
}

const GAMMAS: readonly number[] = [1, 1.1, 1.25, 1.5, 2, 3];

export function sensitivityBounds(
  log: LoggedDecisions,
  { gammas = GAMMAS, level = 0.95 }: { gammas?: readonly number[]; level?: number } = {},
): SensitivityBound[] {
  const order = Int32Array.from(log.reward.keys()).sort((i, j) => log.reward[i]! - log.reward[j]! || i - j);
  return gammas.map((gamma) => {
    if (!(gamma >= 1)) throw new RollbookError("bad-gamma", { gamma }, `Γ = ${gamma} is below 1.`);
    const low = extreme({ log, order, gamma, up: false });
    const high = extreme({ log, order, gamma, up: true });
    return {
      gamma,
      low: low.value,
      high: high.value,
      intervalLow: correctedInterval(low, level).low,
      intervalHigh: correctedInterval(high, level).high,
    };
  });
}

/** The optimum gives the largest weights to one side of a reward threshold and the smallest to the other. Tries every
 *  threshold with running sums. */
function extreme({
  log,
  order,
  gamma,
  up,
}: {
  log: LoggedDecisions;
  order: Int32Array;
  gamma: number;
  up: boolean;
}): Estimate {
  const rows = log.reward.length;
  const light = new Float64Array(rows);
  const heavy = new Float64Array(rows);
  let top = 0;
  let bottom = 0;
  for (let i = 0; i < rows; i++) {
    const odds = 1 / log.behaviour[i]! - 1;
    light[i] = log.target[i]! * (1 + odds / gamma);
    heavy[i] = log.target[i]! * (1 + odds * gamma);
    top += light[i]! * log.reward[i]!;
    bottom += light[i]!;
  }
  let best = top / bottom;
  let bestCut = 0;
  for (let cut = 1; cut <= rows; cut++) {
    const row = order[up ? rows - cut : cut - 1]!;
    top += (heavy[row]! - light[row]!) * log.reward[row]!;
    bottom += heavy[row]! - light[row]!;
    const value = top / bottom;
    if (up ? value > best : value < best) {
      best = value;
      bestCut = cut;
    }
  }
  const bottoms = light.slice();
  for (let cut = 1; cut <= bestCut; cut++) {
    const row = order[up ? rows - cut : cut - 1]!;
    bottoms[row] = heavy[row]!;
  }
  const tops = bottoms.map((w, i) => w * log.reward[i]!);
  const units = unitsOf(log);
  const exposure = { weights: bottoms, units, width: outcomeWidth(log) };
  return ratioOverUnits(`SNIPS at Γ = ${gamma}`, { tops, bottoms, units, exposure });
}
