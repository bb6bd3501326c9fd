/** Cross-fitting: assigns units to folds, so that no model predicts a unit it has seen. */
import { type Rng, RollbookError } from "../../../base/index.ts";
import type { Units } from "../log/index.ts";

/** Visits each fold with the rows outside it, for training, and the rows inside it, for prediction. */
export function forEachFold(
  units: Units,
  { folds, rng }: { folds: number; rng: Rng },
  visit: (train: Int32Array, held: Int32Array) => void,
): void {
  const foldOf = dealFolds(units, folds, rng);
  for (let fold = 0; fold < folds; fold++) {
    const [train, held]: [number[], number[]] = [[], []];
    for (let row = 0; row < foldOf.length; row++) (foldOf[row] === fold ? held : train).push(row);
    visit(Int32Array.from(train), Int32Array.from(held));
  }
}

/** The fold of each row. Folds differ by at most one unit; the rows of a unit share a fold. */
function dealFolds(units: Units, folds: number, rng: Rng): Int32Array {
  if (!Number.isInteger(folds) || folds < 2 || folds > units.count) {
    throw new RollbookError(
      "bad-folds",
      { folds, units: units.count },
      `an estimate of this kind deals independent units into ${folds} parts, and there ${units.count === 1 ? "is 1 unit" : `are ${units.count} units`}. Log more tasks, or group rows by another --unit: task, session or decision.`,
    );
  }
  const order = rng.shuffle(Array.from({ length: units.count }, (_, i) => i));
  const ofUnit = new Int32Array(units.count);
  order.forEach((unit, rank) => {
    ofUnit[unit] = rank % folds;
  });
  return units.of.map((unit) => ofUnit[unit]!);
}
