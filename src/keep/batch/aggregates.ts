/** Sums and means of a batch while it is written: in total, by source revision, by group. Plain f64 sums in row
 *  order. */
import { compareUtf8, type Id } from "../../base/index.ts";
import type { BatchGroups, RecordOf } from "../../contract/index.ts";
import type { GroupBaseline } from "./advantage.ts";

export class Sums {
  rows = 0;
  samples = 0;
  rewardSum = 0;
  advantageSum = 0;

  add(part: { rows: number; samples: number; rewardSum: number; advantageSum: number }): void {
    this.rows += part.rows;
    this.samples += part.samples;
    this.rewardSum += part.rewardSum;
    this.advantageSum += part.advantageSum;
  }

  /** Reward per row, advantage per sample. */
  aggregate() {
    const { rows, samples, rewardSum, advantageSum } = this;
    return {
      rows,
      samples,
      rewardSum,
      rewardMean: ratio(rewardSum, rows),
      advantageSum,
      advantageMean: ratio(advantageSum, samples),
    };
  }
}

export function groupTable(
  groups: ReadonlyMap<Id, Sums>,
  baselines: ReadonlyMap<Id, GroupBaseline>,
): RecordOf<typeof BatchGroups>["groups"] {
  return [...groups]
    .sort(([a], [b]) => compareUtf8(a, b))
    .map(([group, sums]) => {
      const { rollouts, mean, spread } = baselines.get(group)!;
      return { group, rollouts, baseline: mean, spread, ...sums.aggregate() };
    });
}

function ratio(sum: number, count: number): number {
  return count === 0 ? 0 : sum / count;
}
