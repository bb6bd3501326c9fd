/** The result of an ablation: one row for each reward, dataset size, arm and confidence floor.
 *  Only digests and figures. */
import { type Digest, isObject, type Json, parseJson, RollbookError } from "../../base/index.ts";
import type { ArmResult } from "./result.ts";

/** The varied values. */
export interface Ablation {
  /** Numbers of decisions in a training log. */
  readonly decisions: readonly number[];
  /** Confidence floors of every learned arm. */
  readonly floors: readonly number[];
  /** Factors on the weights of cost and latency: 0 leaves the term out. */
  readonly costWeights: readonly number[];
  readonly latencyWeights: readonly number[];
}

export interface AblationRow {
  readonly decisions: number;
  readonly costWeight: number;
  readonly latencyWeight: number;
  readonly best: number;
  readonly bestSingle: number;
  readonly arm: Pick<
    ArmResult,
    "name" | "learner" | "floor" | "checkpoints" | "exact" | "gapClosed" | "versus" | "costVersus"
  >;
}

export interface AblationResult {
  readonly schema: "rollbook.bench-ablation.v1";
  readonly suite: { readonly name: string; readonly digest: Digest };
  readonly tasks: { readonly train: number; readonly heldOut: number };
  readonly repetitions: number;
  readonly varied: Ablation;
  readonly rows: readonly AblationRow[];
}

/** Parses a result file; `where` names it in errors. */
function jsonOf(text: string, where: string): Json {
  try {
    return parseJson(text);
  } catch (cause) {
    throw new RollbookError(
      "bad-result",
      { where },
      `${where} is not JSON. Name a file that \`bench ablate --out\` wrote.`,
      { cause },
    );
  }
}

export function parseAblation(text: string, where: string): AblationResult {
  const value = jsonOf(text, where);
  if (!isObject(value) || value.schema !== "rollbook.bench-ablation.v1")
    throw new RollbookError(
      "bad-result",
      { where },
      `${where} is not a result of \`rollbook bench ablate\`: its schema is not rollbook.bench-ablation.v1. Name a file that \`bench ablate --out\` wrote.`,
    );
  return value as unknown as AblationResult;
}
