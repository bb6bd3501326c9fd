/** Assigns rollouts to training, calibration or judging.
 *  In: the id of a unit (a task, a session, a decision) and a rule. Out: its part. A function of the id alone: a unit
 *  keeps its part when more data arrives, and rows of one unit are never in two parts. */
import { hash } from "node:crypto";
import { RollbookError } from "../../base/index.ts";
import {
  type RolloutContent,
  type SplitPart,
  type SplitUnit,
  splitPart,
  splitUnit,
  taskOf,
} from "../../contract/index.ts";

export type { SplitPart, SplitUnit } from "../../contract/index.ts";

export const SPLIT_PARTS = splitPart.options;
export const SPLIT_UNITS = splitUnit.options;

export interface SplitRule {
  readonly unit: SplitUnit;
  readonly salt: string;
  readonly shares: readonly [number, number, number];
}

export const DEFAULT_SPLIT: SplitRule = { unit: "task", salt: "rollbook", shares: [0.6, 0.2, 0.2] };
/** Everything is for training, and nothing is left for judging. */
export const TRAIN_ON_ALL: SplitRule["shares"] = [1, 0, 0];

const SUM_TOLERANCE = 1e-9;

export function partOf(unit: string, { salt, shares }: Pick<SplitRule, "salt" | "shares">): SplitPart {
  const point = hash("sha256", `rollbook.split.v1\0${salt}\0${unit}`, "buffer").readUInt32BE(0) / 2 ** 32;
  return point < shares[0] ? "train" : point < shares[0] + shares[1] ? "calibration" : "judge";
}

/** Split unit of a stream. Decisions of one chain are not independent, so the first decision stands for all of them. */
export function unitOfStream(
  content: Pick<RolloutContent, "rolloutId" | "group"> & { task: { id: string } },
  stream: number,
  unit: SplitUnit,
): string {
  switch (unit) {
    case "task":
      return taskOf(content);
    case "session":
      return sessionOf(content);
    case "decision":
      return decisionId(content.rolloutId, stream, 0);
    default:
      return unit satisfies never;
  }
}

/** Session of a rollout: its group, else the rollout itself. */
export function sessionOf({ group, rolloutId }: Pick<RolloutContent, "rolloutId" | "group">): string {
  return group ?? rolloutId;
}

/** Id of a decision, from its rollout, its stream and its step. */
export function decisionId(rolloutId: string, stream: number, step: number): string {
  return `${rolloutId}/${stream}/${step}`;
}

export function checkSplit(rule: SplitRule): SplitRule {
  const { shares } = rule;
  const sum = shares[0] + shares[1] + shares[2];
  if (shares.every((each) => each >= 0) && shares[0] > 0 && Math.abs(sum - 1) <= SUM_TOLERANCE) return rule;
  throw new RollbookError(
    "bad-split",
    { shares },
    `the shares ${shares.join(", ")} are not a valid split. Give three numbers of 0 or more that add up to 1; the first, for training, must be above 0.`,
  );
}
