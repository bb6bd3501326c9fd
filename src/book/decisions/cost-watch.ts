/** Warns about costs of decisions that a book stores differently from their file. A rollout without calls stores a
 *  recorded cost as the reward term `cost`, which may be mixed with costs of another unit.
 *  In: rows as they enter. Out: warnings, after all rows are seen. Refuses nothing. */
import { plural } from "../../base/index.ts";
import { hasOwnCost, type LoggedRow } from "../../learn/index.ts";
import type { ImportWarning } from "../import/index.ts";

export class CostWatch {
  #own = 0;
  readonly #dropped = { count: 0, first: "" };
  readonly #kept = { count: 0, first: "" };

  see(row: LoggedRow): void {
    const isOwn = hasOwnCost(row);
    if (isOwn) this.#own++;
    if (row.costUsd === undefined) return;
    const bills = isOwn ? this.#dropped : this.#kept;
    if (bills.count++ === 0) bills.first = row.id;
  }

  warnings(): ImportWarning[] {
    const warnings: ImportWarning[] = [];
    const [dropped, kept] = [{ ...this.#dropped }, { ...this.#kept }];
    if (dropped.count > 0)
      warnings.push({
        code: "cost-not-kept",
        fields: dropped,
        message: `the book does not keep cost_usd of ${plural(dropped.count, "decision")} (first ${dropped.first}): a cost term or the prices of all candidates are already in the file. Remove these from the file to judge by cost_usd.`,
      });
    if (kept.count > 0 && this.#own > 0)
      warnings.push({
        code: "mixed-costs",
        fields: { ...kept, others: this.#own },
        message: `the book keeps cost_usd of ${plural(kept.count, "decision")} (first ${kept.first}) as a cost term, beside ${plural(this.#own, "decision")} with a cost term or prices. Check that all costs are in US dollars.`,
      });
    return warnings;
  }
}
