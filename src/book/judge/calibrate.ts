/** `train --floor-risk`: sets the floor of a fresh checkpoint on the calibration split and seals what it promises.
 *  Who has the calibration rows can follow the promise from them again. */
import { parseId, RollbookError } from "../../base/index.ts";
import { FloorPromise, type Sealed, seal } from "../../contract/index.ts";
import { calibrateFloor, type JudgedRow, toJudgedRows } from "../../judge/index.ts";
import {
  baselineOf,
  digestRows,
  hasSeen,
  type LoggedRow,
  returnDiscount,
  returnsToGo,
  type SplitRule,
  type SplitUnit,
  unitOf,
} from "../../learn/index.ts";
import { type Checkpoint, type PolicyModel, policyOf } from "../../policy/index.ts";
import { type LoadedPolicy, type LoadedSetup, tableOf } from "./load-policy.ts";
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
  const rows = labelledOf(options.rows);
  const { id, digest } = checkpoint.revision.record;
  const table = tableOf(options.terms, baselineOf(checkpoint.model), id);
  const { propensityFloor, qualityRange: range } = options.terms;
  const terms = { policy: policyOf(checkpoint), table, propensityFloor, range };
  const choice = calibrateFloor(riskRows(rows, checkpoint.model, rule.unit), { ...terms, alpha });
  return seal(FloorPromise, {
    policy: { id, digest },
    table: table.digest,
    ...choice,
    measure: parseId("quality"),
    range,
    propensityFloor,
    data: digestRows(rows),
    split: { unit: rule.unit, salt: rule.salt, shares: [...rule.shares] },
    atMs,
  });
}

/** Whether the promise follows from its calibration rows; undefined where they are not among these. Throws if it does not. */
export function followPromise(
  rows: readonly LoggedRow[],
  { seen, rule, folder, policy, checkpoint }: LoadedPolicy,
  { promise, table }: Pick<LoadedSetup, "promise" | "table">,
): true | undefined {
  if (promise === undefined) return undefined;
  const calibration = labelledOf(rows.filter((row) => hasSeen(seen.calibration, unitOf(row, rule.unit))));
  const { data, alpha, propensityFloor, range, floor, bound } = promise.record;
  if (calibration.length === 0 || digestRows(calibration) !== data) return undefined;
  const judged = riskRows(calibration, checkpoint.model, rule.unit);
  const again = calibrateFloor(judged, { policy, table, propensityFloor, range, alpha });
  if (again.floor === floor && again.bound === bound) return true;
  throw new RollbookError(
    "digest-mismatch",
    { folder, expected: again.floor, actual: floor },
    `${folder}: floor.json promises a floor of ${floor}, its own calibration rows give ${again.floor}. Restore the file, or train again.`,
  );
}

/** The risk of a decision is that of the return it learned from; a checkpoint that names no discount learned from rewards. */
export function riskRows(
  rows: readonly LoggedRow[],
  model: PolicyModel,
  unit: SplitUnit,
): readonly JudgedRow[] {
  return toJudgedRows(returnsToGo(rows, returnDiscount(model) ?? 0), unit).rows;
}

/** What has no outcome promises nothing, and may or may not be at hand. */
function labelledOf(rows: readonly LoggedRow[]): LoggedRow[] {
  return rows.filter(({ reward }) => reward !== null);
}
