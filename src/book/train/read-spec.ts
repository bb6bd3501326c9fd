/** The features a policy is trained on, of a file. */
import { readFileSync } from "node:fs";
import { parseJson } from "../../base/index.ts";
import { type FeatureSpec, parseFeatureSpec } from "../../policy/index.ts";

export function readSpec({ features }: { features?: string }): FeatureSpec | undefined {
  if (features === undefined) return undefined;
  return parseFeatureSpec(parseJson(readFileSync(features, "utf8"), features), features);
}
