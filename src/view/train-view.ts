/** What a training has made, on a terminal and as JSON. */
import type { Digest } from "../base/index.ts";
import type { FloorPromise } from "../contract/index.ts";
import type { PolicyModel } from "../policy/index.ts";
import { figure, plural, short } from "./format.ts";

export interface TrainedFacts {
  readonly model: PolicyModel;
  readonly data: Digest;
  readonly rows: number;
  readonly heldBack: number;
  readonly added?: number;
  readonly report?: object;
  readonly out: string;
  readonly id: string;
  readonly revision: Digest;
  readonly weights: Digest;
  readonly sealed: boolean;
  readonly promise: FloorPromise | undefined;
  /** Of the calibration rows. */
  readonly leastPropensity: number;
}

export function trainedJson(facts: TrainedFacts): object {
  const { out, id, revision, weights, rows, heldBack, added, data, model, sealed, report, promise } = facts;
  return {
    ...{ out, id, revision, weights, rows, heldBack },
    ...(added === undefined ? {} : { added }),
    ...{ data, arms: model.arms, sealed },
    ...(report === undefined ? {} : { report }),
    ...(promise === undefined ? {} : { promise }),
  };
}

export function renderTrained(facts: TrainedFacts): string {
  const { id, model, rows, heldBack, added, weights, out, promise, leastPropensity } = facts;
  const fresh = added === undefined ? "" : `, ${added} of them new`;
  const line = `${id}: ${model.kind} over ${model.arms.join(", ")} from ${plural(rows, "row")} of ${rows + heldBack}${fresh}, weights ${short(weights)}: ${out}\n`;
  return promise === undefined ? line : line + promiseText(promise, leastPropensity);
}

function promiseText(promise: FloorPromise, leastPropensity: number): string {
  const { floor, alpha, units, bound, coverage, largestLoss } = promise;
  const facts = `${plural(units, "calibration unit")}, bound ${figure(bound)}, largest loss of one ${figure(largestLoss)}`;
  return floor === null
    ? `no floor keeps the risk at ${alpha}: the policy may not act (${facts}). ${remedy(promise, leastPropensity)}\n`
    : `floor ${figure(floor)}: departures from the table lose at most ${alpha} in expectation; acts on ${figure(100 * coverage)} % of rows (${facts})\n`;
}

/** Even without any loss the bound is B/(n+1): that many units it takes at least. */
function remedy(promise: FloorPromise, leastPropensity: number): string {
  const { alpha, largestLoss, propensityFloor, feedback } = promise;
  const least = (loss: number) => Math.max(1, Math.ceil(loss / alpha - 1));
  const units = `It takes at least ${plural(least(largestLoss), "calibration unit")}`;
  if (feedback === "full" || !(leastPropensity > propensityFloor))
    return `${units}, and more where departures lose. Log more, or allow more.`;
  const other = least((largestLoss * propensityFloor) / leastPropensity);
  return `${units} because one loss may count 1/${figure(propensityFloor)}, the --propensity-floor. No logged propensity here is below ${figure(leastPropensity)}: pass --propensity-floor ${figure(leastPropensity)} if the logging policy never goes below it, and ${other} may do. Or log more, or allow more.`;
}
