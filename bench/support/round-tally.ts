/** Adds up a campaign that is run in pieces. In: a file of JSON lines, one for each completed range. Out: the sum of
 *  the ranges of one campaign and seed, as a line. A repeated range counts once, with its last outcome. */
import { appendFileSync, readFileSync } from "node:fs";

export interface RangeOutcome {
  readonly name: string;
  readonly seed: string;
  readonly first: number;
  readonly last: number;
  readonly passed: number;
  readonly failed: number;
}

export function addToTally(file: string, outcome: RangeOutcome): string {
  appendFileSync(file, `${JSON.stringify(outcome)}\n`);
  const ranges = new Map<string, RangeOutcome>();
  for (const line of readFileSync(file, "utf8").split("\n")) {
    if (line === "") continue;
    const each = JSON.parse(line) as RangeOutcome;
    if (each.name === outcome.name && each.seed === outcome.seed)
      ranges.set(`${each.first}-${each.last}`, each);
  }
  const all = [...ranges.values()].sort((a, b) => a.first - b.first);
  const sum = (of: "passed" | "failed") => all.reduce((total, each) => total + each[of], 0);
  const names = all.map(({ first, last }) => `${first}-${last}`).join(", ");
  return `${outcome.name}, rounds ${names}: ${sum("passed")} passed, ${sum("failed")} failed (seed ${outcome.seed})`;
}
