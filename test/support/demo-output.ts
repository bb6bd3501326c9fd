/** The output of `rollbook demo --json`, built from its type; `test/e2e/demo.test.ts` compares it with a real demo. */
import type { Json } from "../../src/base/index.ts";
import { DEMO_SUMMARY } from "./demo-summary.ts";

export const DEMO_OUTPUT = { ...DEMO_SUMMARY, costUnit: "USD", costQualityBasis: "exact" };

/** Every path in a document with the type of its value, such as `windows[].index number`. */
export function pathTypes(value: Json, path = ""): Set<string> {
  if (Array.isArray(value)) return new Set(value.flatMap((each) => [...pathTypes(each, `${path}[]`)]));
  if (typeof value !== "object" || value === null)
    return new Set([`${path} ${value === null ? "null" : typeof value}`]);
  return new Set(Object.entries(value).flatMap(([name, each]) => [...pathTypes(each!, `${path}.${name}`)]));
}
