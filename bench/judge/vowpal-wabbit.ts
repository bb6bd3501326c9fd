/** Vowpal Wabbit's contextual-bandit reference (rcv1, `--cb 2 --ngram 2 --skips 4`): one online pass of our own learner
 *  with the same options. Compares the progressive validation loss with the peer's printed loss for the same file. */
import { readFileSync } from "node:fs";
import { readVowpalCb } from "../../src/convert/vowpal-text.ts";
import {
  makeOnlineBandit,
  type OnlineBanditOptions,
  type ProgressiveTerms,
} from "../../src/learn/online/index.ts";
import { makeSkipGrams } from "../support/judge/skip-grams.ts";
import { dataFile, type JudgePart, type JudgeRow, row } from "./part.ts";

const BUCKETS = 1 << 20;
const BAR = 0.14;
/** The peer's own runs: its learning rate, its log, and the mean that it prints. */
const RUNS = [
  { kind: "ips", rate: 0.125, log: "40_rcv1_raw_new_cb_ips.stderr", printed: "ips" },
  { kind: "dm", rate: 0.125, log: "41_rcv1_raw_new_cb_dm.stderr", printed: "ips" },
  { kind: "dr", rate: 0.25, log: "39_rcv1_raw_new_cb_dr.stderr", printed: "dr" },
] as const;

export const vowpalWabbit: JudgePart = {
  name: "vowpal-wabbit",
  async run({ data }) {
    const file = dataFile(data, "vw/rcv1_raw_cb_small.vw");
    const rows: JudgeRow[] = [];
    for (const { kind, rate, log, printed } of RUNS) {
      const losses = await progressiveLosses(file, { kind, rate });
      const peer = /average loss = (\S+)/.exec(readFileSync(dataFile(data, `vw/${log}`), "utf8"))![1];
      const set = `VW rcv1 --cb 2, learner ${kind}`;
      const bar = kind === "dr" ? { text: `≤ ${BAR}`, met: losses.dr.mean <= BAR } : undefined;
      rows.push(
        row(
          set,
          `loss as VW reports it (${printed.toUpperCase()})`,
          `${show(losses[printed])}, VW ${peer}`,
          bar,
        ),
        row(set, "  its IPS, DM, DR estimates", [losses.ips, losses.dm, losses.dr].map(show).join(", ")),
      );
    }
    return rows;
  },
};

interface Loss {
  readonly mean: number;
  readonly error: number;
}

/** The mean of each estimate's terms and its standard error. Costs are negative rewards. */
export async function progressiveLosses(
  file: string,
  { kind, rate }: Pick<OnlineBanditOptions, "kind" | "rate">,
): Promise<Record<"ips" | "dm" | "dr", Loss>> {
  const actions = 2;
  const grams = makeSkipGrams({ buckets: BUCKETS, skips: 4 });
  const bandit = makeOnlineBandit({ actions, kind, rate, size: BUCKETS, rewards: { low: -1, high: 0 } });
  const terms: ProgressiveTerms[] = [];
  for await (const { context, action, reward, propensity } of readVowpalCb(file, { actions }))
    terms.push(bandit.visit(grams(context), { action, reward: reward!, propensity: propensity! }));
  return {
    ips: lossOf(terms.map((each) => -each.ips)),
    dm: lossOf(terms.map((each) => -each.dm)),
    dr: lossOf(terms.map((each) => -each.dr)),
  };
}

function lossOf(values: readonly number[]): Loss {
  const mean = values.reduce((sum, each) => sum + each, 0) / values.length;
  const square = values.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (values.length - 1);
  return { mean, error: Math.sqrt(square / values.length) };
}

function show({ mean, error }: Loss): string {
  return `${mean.toFixed(4)} ± ${error.toFixed(4)}`;
}
