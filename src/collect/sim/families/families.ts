/** Every family, in the order in which generation alternates between them. */
import { RollbookError } from "../../../base/index.ts";
import type { Family } from "./family.ts";
import { gridPlanning } from "./grid-planning.ts";
import { jsonTransform } from "./json-transform.ts";
import { logForensics } from "./log-forensics.ts";
import { bugfixFamily, implementFamily } from "./pipeline/index.ts";
import { regexFromExamples } from "./regex-from-examples.ts";
import { sqlQuery } from "./sql-query.ts";
import { wordProblems } from "./word-problems.ts";

export const FAMILIES: readonly Family[] = [
  // Families of two kinds: repair a small module with mistakes, and write a function from its description.
  bugfixFamily("js-bugfix", "javascript"),
  implementFamily("js-implement", "javascript"),
  bugfixFamily("py-bugfix", "python"),
  implementFamily("py-implement", "python"),
  jsonTransform,
  logForensics,
  regexFromExamples,
  gridPlanning,
  sqlQuery,
  wordProblems,
];

export function familyNamed(name: string): Family {
  const family = FAMILIES.find((each) => each.name === name);
  if (family === undefined) throw new RollbookError("unknown-family", { name }, `${noFamily(name)}.`);
  return family;
}

/** Text about an unknown name, without a full stop. */
export function noFamily(name: string): string {
  return `there is no family of tasks ${JSON.stringify(name)}. Choose among ${FAMILIES.map((each) => each.name).join(", ")}`;
}
