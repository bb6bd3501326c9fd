/** Defines `--split` and `--unit`: the rows for training, for the floor, and for judging. */
import { type Command, InvalidArgumentError, Option } from "commander";
import {
  checkSplit,
  DEFAULT_SPLIT,
  SPLIT_PARTS,
  SPLIT_UNITS,
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
        "shares of units to train, to calibrate and to judge, which add up to 100; all trains on everything. A hash of its key decides into which split a unit goes, so with few units the real shares vary",
      )
        .argParser(toShares)
        .default(DEFAULT_SPLIT.shares, "60/20/20"),
    )
    .addOption(
      new Option(
        "--unit <unit>",
        "grouping key of rows (a unit): rows with the same key stay in the same split and count as one observation",
      )
        .choices(SPLIT_UNITS)
        .default(DEFAULT_SPLIT.unit),
    );
}

export function splitRule({ split, unit }: SplitFlags): SplitRule {
  return { ...DEFAULT_SPLIT, unit, shares: split };
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
