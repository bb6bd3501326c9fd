/** Selects the rows of one part of a split. */
import { RollbookError } from "../../base/index.ts";
import {
  type LoggedRow,
  partOf,
  SPLIT_UNITS,
  type SplitPart,
  type SplitRule,
  unitOf,
} from "../../learn/index.ts";

function splitRows(rows: readonly LoggedRow[], rule: SplitRule): Readonly<Record<SplitPart, LoggedRow[]>> {
  const parts: Record<SplitPart, LoggedRow[]> = { train: [], calibration: [], judge: [] };
  for (const row of rows) parts[partOf(unitOf(row, rule.unit), rule)].push(row);
  return parts;
}

/** Throws if the part is empty. */
export function requirePart(
  rows: readonly LoggedRow[],
  part: SplitPart,
  rule: SplitRule,
): readonly LoggedRow[] {
  const found = splitRows(rows, rule)[part];
  if (found.length > 0) return found;
  const units = new Set(rows.map((row) => unitOf(row, rule.unit))).size;
  throw emptyPart(part, { rows: rows.length, units, unit: rule.unit });
}

export function emptyPart(
  part: SplitPart,
  { rows, units, unit }: { rows: number; units: number; unit: SplitRule["unit"] },
): RollbookError {
  return new RollbookError(
    "empty-split",
    { part, rows, units, unit },
    `the ${part} split is empty: ${rows} rows in ${units} units (by ${unit}). Log more, group them by another --unit (${SPLIT_UNITS.join(", ")}), or train with other --split shares.`,
  );
}
