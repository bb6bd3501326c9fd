/** Sets the floor of a new checkpoint on the calibration split and seals the promise (`train --floor-risk`). Anyone
 *  with the calibration rows can compute the promise again. */
import { parseId, RollbookError } from "../../base/index.ts";
import { FloorPromise, type Sealed, seal } from "../../contract/index.ts";
import { calibrateFloor, type JudgedRow, toJudgedRows } from "../../judge/index.ts";
import {
  baselineOf,
  digestRows,
  floorDiscount,
  hasSeen,
  type LoggedRow,
  returnsToGo,
  type SplitRule,
  type SplitUnit,
  unitOf,
} from "../../learn/index.ts";
import { type Checkpoint, type PolicyModel, policyOf } from "../../policy/index.ts";
import { knownCandidates, type LoadedPolicy, type LoadedSetup, tableOf } from "./load-policy.ts";
import type { PromiseTerms } from "./promise-terms.ts";

export function promiseFloor(
  checkpoint: Checkpoint,
  options: {
    readonly rows: readonly LoggedRow[];
    readonly rule: SplitRule;
    readonly alpha: number;
    readonly terms: PromiseTerms;
    readonly atMs: number;
  },
): Sealed<FloorPromise> {
  const { rule, alpha, atMs } = options;
  const { id, digest } = checkpoint.revision.record;
  const table = tableOf(
    { ...options.terms, known: knownCandidates([{ checkpoint }], options.rows) },
    baselineOf(checkpoint.model),
    id,
  );
  const { propensityFloor, qualityRange: range } = options.terms;
  const terms = { policy: policyOf(checkpoint), table, propensityFloor, range };
  const judged = riskRows(options.rows, checkpoint.model, rule.unit);
  const choice = calibrateFloor(judged, { ...terms, alpha });
  return seal(FloorPromise, {
    policy: { id, digest },
    table: table.digest,
    ...choice,
    measure: parseId("quality"),
    range,
    propensityFloor,
    data: digestRows(loggedOf(options.rows, judged)),
    split: { unit: rule.unit, salt: rule.salt, shares: [...rule.shares] },
    atMs,
  });
}

/** True if the promise follows from its calibration rows; undefined if they are not among `rows`. Throws if it does not
 *  follow. */
export function followPromise(
  rows: readonly LoggedRow[],
  { seen, rule, folder, policy, checkpoint }: LoadedPolicy,
  { promise, table }: Pick<LoadedSetup, "promise" | "table">,
): true | undefined {
  if (promise === undefined) return undefined;
  const calibration = rows.filter((row) => hasSeen(seen.calibration, unitOf(row, rule.unit)));
  const judged = riskRows(calibration, checkpoint.model, rule.unit);
  const { data, alpha, propensityFloor, range, floor, bound } = promise.record;
  if (judged.length === 0 || digestRows(loggedOf(calibration, judged)) !== data) return undefined;
  const again = calibrateFloor(judged, { policy, table, propensityFloor, range, alpha });
  if (again.floor === floor && again.bound === bound) return true;
  throw new RollbookError(
    "digest-mismatch",
    { folder, expected: again.floor, actual: floor },
    `${folder}: floor.json promises a floor of ${floor}, its own calibration rows give ${again.floor}. Restore the file, or train again.`,
  );
}

/** The risk of a decision is computed from the return it learned from. Decisions before a missing outcome have no
 *  return and are left out. */
export function riskRows(
  rows: readonly LoggedRow[],
  model: PolicyModel,
  unit: SplitUnit,
): readonly JudgedRow[] {
  return toJudgedRows(returnsToGo(rows, floorDiscount(model)), unit).rows;
}

/** Logged form of the judged rows. Rows without an outcome do not affect the promise, and need not be available. */
function loggedOf(rows: readonly LoggedRow[], judged: readonly JudgedRow[]): LoggedRow[] {
  const ids = new Set(judged.map(({ id }) => id));
  return rows.filter(({ id }) => ids.has(id));
}
