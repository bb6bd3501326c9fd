/** Functions that every model reader uses: tensors of a known shape, places of arms, the answer without knowledge. */
import { RollbookError } from "../base/index.ts";
import type { PolicyModel } from "./checkpoint.ts";
import type { DecisionCandidate, PolicyAnswer } from "./decision.ts";
import type { FeatureSpec } from "./feature-spec.ts";

export function tensorOf(
  { tensors, kind }: PolicyModel,
  name: string,
  shape: readonly number[],
): Float64Array {
  const tensor = tensors[name];
  const fits = tensor?.data instanceof Float64Array && String(tensor.shape) === String(shape);
  if (fits) return tensor.data as Float64Array;
  throw new RollbookError(
    "bad-checkpoint",
    { tensor: name, expected: shape, actual: tensor?.shape ?? null },
    `a ${kind} policy needs the tensor ${name} of shape [${shape}] in F64, the checkpoint has ${tensor === undefined ? "none" : `[${tensor.shape}]`}. Train again.`,
  );
}

/** A tensor of integers of any length. */
export function integersOf({ tensors, kind }: PolicyModel, name: string): Int32Array {
  const data = tensors[name]?.data;
  if (data instanceof Int32Array) return data;
  throw new RollbookError(
    "bad-checkpoint",
    { tensor: name },
    `a ${kind} policy needs the tensor ${name} in I32. Train again.`,
  );
}

/** The feature spec of a policy that reads version 1 of the spec. */
export function firstSpecOf({ spec, kind }: PolicyModel): FeatureSpec {
  if (spec.schema === "rollbook.feature-spec.v1") return spec;
  throw new RollbookError(
    "bad-checkpoint",
    { kind, schema: spec.schema },
    `a ${kind} policy reads rollbook.feature-spec.v1, the checkpoint has ${spec.schema}. Train again.`,
  );
}

export function armIndex(arms: readonly string[]): ReadonlyMap<string, number> {
  return new Map(arms.map((id, i) => [id, i]));
}

/** Equal probabilities for all selectable candidates, with confidence 0. */
export function evenAnswer(candidates: readonly DecisionCandidate[]): PolicyAnswer {
  const count = candidates.filter((one) => one.selectable).length;
  return { probabilities: candidates.map((one) => (one.selectable ? 1 / count : 0)), confidence: 0 };
}
