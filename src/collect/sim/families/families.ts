/** Every family, in the order in which tasks of all families take turns. */
import { RollbookError } from "../../../base/index.ts";
import type { Family } from "./family.ts";
import { gridPlanning } from "./grid-planning.ts";
import { jsBugfix } from "./js-bugfix.ts";
import { jsImplement } from "./js-implement.ts";
import { jsonTransform } from "./json-transform.ts";
import { logForensics } from "./log-forensics.ts";
import { pyBugfix } from "./py-bugfix.ts";
import { pyImplement } from "./py-implement.ts";
import { regexFromExamples } from "./regex-from-examples.ts";
import { sqlQuery } from "./sql-query.ts";
import { wordProblems } from "./word-problems.ts";

export const FAMILIES: readonly Family[] = [
  jsBugfix,
  jsImplement,
  pyBugfix,
  pyImplement,
  jsonTransform,
  logForensics,
  regexFromExamples,
  gridPlanning,
  sqlQuery,
  wordProblems,
];

export function familyNamed(name: string): Family {
  const family = FAMILIES.find((each) => each.name === name);
  if (family === undefined)
    throw new RollbookError(
      "unknown-family",
      { name },
      `there is no family ${JSON.stringify(name)}; there are ${FAMILIES.map((each) => each.name).join(", ")}.`,
    );
  return family;
}
