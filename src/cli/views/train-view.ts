/** What a training has made, on a terminal and as JSON. */
import type { Digest } from "../../base/index.ts";
import type { FloorPromise } from "../../contract/index.ts";
import type { PolicyModel } from "../../policy/index.ts";
import { figure, plural, short } from "../output.ts";

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
  const { id, model, rows, heldBack, added, weights, out, promise } = facts;
  const fresh = added === undefined ? "" : `, ${added} of them new`;
  const line = `${id}: ${model.kind} over ${model.arms.join(", ")} from ${plural(rows, "row")} of ${rows + heldBack}${fresh}, weights ${short(weights)}: ${out}\n`;
  return promise === undefined ? line : line + promiseText(promise);
}

function promiseText({ floor, alpha, units, bound, coverage, largestLoss }: FloorPromise): string {
  const facts = `${plural(units, "calibration unit")}, bound ${figure(bound)}, largest loss of one ${figure(largestLoss)}`;
  return floor === null
    ? `no floor keeps the risk at ${alpha}: the policy may not act (${facts}). Log more, or allow more.\n`
    : `floor ${figure(floor)}: departures from the table lose at most ${alpha} in expectation; acts on ${figure(100 * coverage)} % of rows (${facts})\n`;
}
