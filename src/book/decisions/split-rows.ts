/** Rows by the part they play: `--split` and `--unit`, shared by `train`, `evaluate` and `gate`. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { RollbookError } from "../../base/index.ts";
import { unitOf } from "../../convert/judged-rows.ts";
import type { RoutingRow } from "../../convert/routing-jsonl.ts";
import {
  checkSplit,
  DEFAULT_SPLIT,
  partOf,
  SPLIT_PARTS,
  SPLIT_UNITS,
  type SplitPart,
  type SplitRule,
  type SplitUnit,
  TRAIN_ON_ALL,
} from "../../learn/index.ts";

export interface SplitFlags {
  split: SplitRule["shares"];
  unit: SplitUnit;
}

export function addSplitOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--split <shares>",
        "shares of train/calibration/judge that add up to 100, or all: train on everything",
      )
        .argParser(toShares)
        .default(DEFAULT_SPLIT.shares, "60/20/20"),
    )
    .addOption(
      new Option("--unit <unit>", "rows that share one are never parted")
        .choices(SPLIT_UNITS)
        .default(DEFAULT_SPLIT.unit),
    );
}

export function splitRule({ split, unit }: SplitFlags): SplitRule {
  return { ...DEFAULT_SPLIT, unit, shares: split };
}

export function splitRows(
  rows: readonly RoutingRow[],
  rule: SplitRule,
): Readonly<Record<SplitPart, RoutingRow[]>> {
  const parts: Record<SplitPart, RoutingRow[]> = { train: [], calibration: [], judge: [] };
  for (const row of rows) parts[partOf(unitOf(row, rule.unit), rule)].push(row);
  return parts;
}

/** A part that must not be empty. */
export function requirePart(
  rows: readonly RoutingRow[],
  part: SplitPart,
  rule: SplitRule,
): readonly RoutingRow[] {
  const found = splitRows(rows, rule)[part];
  if (found.length > 0) return found;
  const units = new Set(rows.map((row) => unitOf(row, rule.unit))).size;
  throw new RollbookError(
    "empty-split",
    { part, rows: rows.length, units, unit: rule.unit },
    `the ${part} split is empty: ${rows.length} rows in ${units} units (by ${rule.unit}). Log more, part them by another --unit (${SPLIT_UNITS.join(", ")}), or train with other --split shares.`,
  );
}

function toShares(text: string): SplitRule["shares"] {
  if (text === "all") return TRAIN_ON_ALL;
  const parts = text.split("/").map((part) => (/^\d+(\.\d+)?$/.test(part) ? Number(part) : Number.NaN));
  const sum = parts.reduce((total, each) => total + each, 0);
  const shares = parts.map((each) => each / sum);
  const whole = [1, 100].some((all) => Math.abs(sum - all) < 1e-9 * all);
  if (parts.length !== SPLIT_PARTS.length || !whole)
    throw new InvalidArgumentError(
      "It must be all, or three shares that add up to 100 (or to 1), such as 60/20/20.",
    );
  return checkSplit({ ...DEFAULT_SPLIT, shares: shares as [number, number, number] }).shares;
}
