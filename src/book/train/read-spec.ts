/** Reads the features of a policy from a file. */
import { readFileSync } from "node:fs";
import { parseJson, RollbookError } from "../../base/index.ts";
import { type AnyFeatureSpec, type FeatureSpec, parseAnySpec, type ValueSpec } from "../../policy/index.ts";

interface FeatureFlags {
  readonly features?: string;
}

export function readAnySpec({ features }: FeatureFlags): AnyFeatureSpec | undefined {
  if (features === undefined) return undefined;
  return parseAnySpec(parseJson(readFileSync(features, "utf8"), features), features);
}

/** Features for bandits and behaviour cloning. */
export function readSpec(flags: FeatureFlags): FeatureSpec | undefined {
  const spec = readAnySpec(flags);
  if (spec === undefined || spec.schema === "rollbook.feature-spec.v1") return spec;
  throw otherVersion(flags, "rollbook.feature-spec.v1", spec.schema);
}

/** Features for the learners that predict rewards. */
export function readValueSpec(flags: FeatureFlags): ValueSpec | undefined {
  const spec = readAnySpec(flags);
  if (spec === undefined || spec.schema === "rollbook.feature-spec.v2") return spec;
  throw otherVersion(flags, "rollbook.feature-spec.v2", spec.schema);
}

function otherVersion({ features }: FeatureFlags, wanted: string, given: string): RollbookError {
  return new RollbookError(
    "bad-feature-spec",
    { features, wanted, given },
    `${features} is a ${given}; this learner reads a ${wanted}. Leave --features out, or see docs/reference/learn.md.`,
  );
}
