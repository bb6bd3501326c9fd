/** Train, calibration and judge: which rows a policy may learn from, which set its floor, which judge it.
 *  In: the id of a unit (a task, a session, a decision) and a rule. Out: its part. A function of the id alone: whatever rows
 *  come later, a unit never changes sides, and rows of one unit never stand on two. */
import { hash } from "node:crypto";
import { type Digest, digestJson } from "../base/digest.ts";
import { RollbookError } from "../base/errors.ts";
import type { PolicyModel, Tensor } from "../policy/index.ts";

export const SPLIT_PARTS = ["train", "calibration", "judge"] as const;
export type SplitPart = (typeof SPLIT_PARTS)[number];
/** What belongs together: rows that share one are never parted. */
export const SPLIT_UNITS = ["task", "session", "decision"] as const;
export type SplitUnit = (typeof SPLIT_UNITS)[number];

export interface SplitRule {
  readonly unit: SplitUnit;
  /** Another salt is another split of the same ids. */
  readonly salt: string;
  /** Of train, calibration and judge, summing to 1. */
  readonly shares: readonly [number, number, number];
}

export const DEFAULT_SPLIT: SplitRule = { unit: "task", salt: "rollbook", shares: [0.6, 0.2, 0.2] };
/** Everything is for training, and nothing of it may judge. */
export const TRAIN_ON_ALL: SplitRule["shares"] = [1, 0, 0];

const KEY_BYTES = 8;
const SUM_TOLERANCE = 1e-9;

export function partOf(unit: string, { salt, shares }: SplitRule): SplitPart {
  const point = hash("sha256", `rollbook.split.v1\0${salt}\0${unit}`, "buffer").readUInt32BE(0) / 2 ** 32;
  return point < shares[0] ? "train" : point < shares[0] + shares[1] ? "calibration" : "judge";
}

export function checkSplit(rule: SplitRule): SplitRule {
  const { shares } = rule;
  const sum = shares[0] + shares[1] + shares[2];
  if (shares.every((each) => each >= 0) && shares[0] > 0 && Math.abs(sum - 1) <= SUM_TOLERANCE) return rule;
  throw new RollbookError(
    "bad-split",
    { shares },
    `the shares ${shares.join(", ")} are not three numbers ≥ 0 that sum to 1, the first above 0. Correct the split.`,
  );
}

/** The units a policy has learned from, and those that set its floor, as the checkpoint carries them. */
export interface SeenUnits {
  readonly train: ReadonlySet<string>;
  readonly calibration: ReadonlySet<string>;
}

/** The model with its split: the rule and digests in its config, which the revision binds, and every unit by its hash. */
export function withSplit(
  model: PolicyModel,
  { rule, units }: { rule: SplitRule; units: { readonly [Part in keyof SeenUnits]: readonly string[] } },
): PolicyModel {
  const keys = { train: keysOf(units.train), calibration: keysOf(units.calibration) };
  const { unit, salt, shares } = rule;
  return {
    ...model,
    config: {
      ...model.config,
      split: {
        unit,
        salt,
        shares: [...shares],
        train: digestUnits(keys.train),
        calibration: digestUnits(keys.calibration),
      },
    },
    tensors: {
      ...model.tensors,
      seen_train: toTensor(keys.train),
      seen_calibration: toTensor(keys.calibration),
    },
  };
}

/** The split of a model, checked against its digests; undefined for one that was trained without. */
export function splitOf(model: PolicyModel, where: string): { rule: SplitRule; seen: SeenUnits } | undefined {
  const recorded = model.config.split as (SplitRule & Record<keyof SeenUnits, Digest>) | undefined;
  if (recorded === undefined) return undefined;
  const { unit, salt, shares } = recorded;
  const seen = {
    train: fromTensor(model.tensors.seen_train),
    calibration: fromTensor(model.tensors.seen_calibration),
  };
  for (const part of ["train", "calibration"] as const) {
    const actual = digestUnits([...seen[part]]);
    if (actual !== recorded[part])
      throw new RollbookError(
        "digest-mismatch",
        { where, part, expected: recorded[part], actual },
        `${where}: the ${part} units hash to ${actual}, the config says ${recorded[part]}. Train again.`,
      );
  }
  return { rule: checkSplit({ unit, salt, shares }), seen };
}

export function hasSeen(units: ReadonlySet<string>, unit: string): boolean {
  return units.has(keyOf(unit));
}

function keyOf(unit: string): string {
  return hash("sha256", `rollbook.split-unit.v1\0${unit}`, "hex").slice(0, 2 * KEY_BYTES);
}

function keysOf(units: readonly string[]): string[] {
  return [...new Set(units.map(keyOf))].sort();
}

function digestUnits(keys: readonly string[]): Digest {
  return digestJson("rollbook.split-units.v1", [...keys].sort());
}

function toTensor(keys: readonly string[]): Tensor {
  return { shape: [keys.length, KEY_BYTES], data: new Uint8Array(Buffer.from(keys.join(""), "hex")) };
}

function fromTensor(tensor: Tensor | undefined): Set<string> {
  const hex = Buffer.from((tensor?.data ?? new Uint8Array(0)) as Uint8Array).toString("hex");
  return new Set(Array.from({ length: hex.length / 16 }, (_, i) => hex.slice(16 * i, 16 * i + 16)));
}
