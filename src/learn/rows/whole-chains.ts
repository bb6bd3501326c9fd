/** Whole chains of decisions: a return is known only if every step of its chain is known.
 *  In: logged rows. Out: rows by chain; the chains with all outcomes; an error that names the chain. Pure. */
import { RollbookError } from "../../base/index.ts";
import type { SplitUnit } from "../../contract/index.ts";
import { type LoggedRow, unitOf } from "./decision-row.ts";

/** Rows by chain; chains in the order of their first rows. */
export function rowsByChain(rows: readonly LoggedRow[]): ReadonlyMap<string, LoggedRow[]> {
  const chains = new Map<string, LoggedRow[]>();
  for (const row of rows) {
    const known = chains.get(row.chain);
    if (known === undefined) chains.set(row.chain, [row]);
    else known.push(row);
  }
  return chains;
}

/** Numbers in ids compare as numbers: step 10 follows step 9. */
export function compareNatural(a: string, b: string): number {
  const [left, right] = [a.match(/\d+|\D+/g) ?? [], b.match(/\d+|\D+/g) ?? []];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [x, y] = [left[i]!, right[i]!];
    if (x === y) continue;
    const numeric = /^\d/.test(x) && /^\d/.test(y);
    if (numeric && Number(x) !== Number(y)) return Number(x) - Number(y);
    return x < y ? -1 : 1;
  }
  return left.length - right.length;
}

/** Leaves out every chain that lacks any outcome, as in a batch. `broken` counts the rows left out. */
export function wholeChains(
  rows: readonly LoggedRow[],
  unit: SplitUnit,
): { whole: readonly LoggedRow[]; broken: number } {
  requireWholeChains(rows, unit);
  const broken = new Set(rows.filter(({ reward }) => reward === null).map(({ chain }) => chain));
  const whole = rows.filter(({ chain }) => !broken.has(chain));
  return { whole, broken: rows.length - whole.length };
}

/** Refuses a chain in several units, which a split would cut, and a chain that lacks a step.
 *  Call it before the split. */
export function requireWholeChains(rows: readonly LoggedRow[], unit: SplitUnit): void {
  for (const [chain, steps] of rowsByChain(rows)) {
    const units = new Set(steps.map((row) => unitOf(row, unit)));
    if (units.size > 1) throw tornChain(chain, unit, [...units]);
    const missing = missingStep(chain, steps);
    if (missing !== undefined) throw lackingStep(chain, missing, steps.length);
  }
}

/** The first missing step. Decision K of the chain P/0 has the id P/K. Decision K of a chain C may have the id C/K,
 *  from 0 or 1. Other ids do not state their step. */
function missingStep(chain: string, rows: readonly LoggedRow[]): number | undefined {
  const stem = rows[0]!.id.replace(/\/\d+$/, "");
  const starts = chain === `${stem}/0` ? [0] : chain === stem ? [0, 1] : [];
  const numbers = rows.map(({ id }) => (id.startsWith(`${stem}/`) ? Number(id.slice(stem.length + 1)) : -1));
  if (starts.length === 0 || !numbers.every((each) => Number.isSafeInteger(each) && each >= 0))
    return undefined;
  const known = new Set(numbers);
  let next = starts.find((each) => known.has(each)) ?? starts[0]!;
  const last = numbers.reduce((most, each) => Math.max(most, each), 0);
  while (known.has(next)) next++;
  return next > last ? undefined : next;
}

function tornChain(chain: string, unit: SplitUnit, units: readonly string[]): RollbookError {
  const shown = units.slice(0, 3).join(", ");
  return new RollbookError(
    "torn-chain",
    { chain, unit, units: units.length },
    `chain ${chain} has decisions of ${units.length} ${unit}s (${shown}${units.length > 3 ? ", …" : ""}), and rows are split by ${unit}: a part of a chain has no return. Give all its rows one ${unit}_id, or train with --unit decision, which keeps every chain in one part.`,
  );
}

function lackingStep(chain: string, step: number, rows: number): RollbookError {
  return new RollbookError(
    "missing-step",
    { chain, step, rows },
    `chain ${chain} lacks step ${step}: it has ${rows} decisions and goes on after that. A return needs every step. Add the missing row, loosen the filters, or leave the chain out.`,
  );
}
