/** The split of a policy's training, stored in its checkpoint: the rule, and the hash of every unit it has seen.
 *  In: a model, units. Out: the model with its split, and back. Evaluation leaves out the rows of these units. */
import { hash } from "node:crypto";
import { type Digest, digestJson, RollbookError } from "../../base/index.ts";
import { checkSplit, type SplitRule } from "../../keep/admit/index.ts";
import type { PolicyModel, Tensor } from "../../policy/index.ts";

const KEY_BYTES = 8;

/** The units that a policy learned from, and the units that set its floor, as stored in the checkpoint. */
export interface SeenUnits {
  readonly train: ReadonlySet<string>;
  readonly calibration: ReadonlySet<string>;
}

/** The model with its split: rule and digests in its config, which the revision binds, and the hash of every unit. */
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

/** The split of a model, checked against its digests; undefined if the model was trained without a split. */
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
