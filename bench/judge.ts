/** The judge on real data: estimates, coverage and promises, one table with the bar of each figure. */
import { drAndSnips } from "./judge/dr-and-snips.ts";
import { openBandit } from "./judge/open-bandit.ts";
import type { JudgePart } from "./judge/part.ts";
import { routellm } from "./judge/routellm.ts";
import { seed42 } from "./judge/seed-42.ts";
import { simulator } from "./judge/simulator.ts";
import { uciCoverage } from "./judge/uci-coverage.ts";
import { vowpalWabbit } from "./judge/vowpal-wabbit.ts";
import { runParts } from "./support/part-table.ts";
import type { Bench } from "./support/programs.ts";

const PARTS: readonly JudgePart[] = [
  ...[openBandit, seed42, vowpalWabbit, simulator, uciCoverage, routellm],
  ...drAndSnips,
];

export const bench: Bench = {
  summary:
    "off-policy estimates on real data: points, coverage, known truths (--data DIR --only PART --scale N)",
  async run(args) {
    await runParts(PARTS, args);
  },
};
