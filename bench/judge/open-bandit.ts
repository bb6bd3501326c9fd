/** Open Bandit, men's campaign, both directions:
 *  each policy is judged on the other's log and compared with its own truth. */
import { type OpenBanditDecision, POSITIONS, readOpenBandit } from "../../src/convert/open-bandit.ts";
import {
  bootstrapInterval,
  diagnose,
  ips,
  judgePolicy,
  type LoggedDecisions,
  panelText,
  snips,
} from "../../src/judge/ope/index.ts";
import { readBetaPrior, thompsonPositions } from "../support/judge/beta-prior.ts";
import { toColumns } from "../support/judge/to-columns.ts";
import { dataFile, equalTo, type JudgeOptions, type JudgePart, type JudgeRow, row } from "./part.ts";

/** Number of simulations behind the Thompson policy's probabilities, the same as the data set's authors use. */
const DRAWS = 100_000;
const ITEMS = 34;

export const openBandit: JudgePart = {
  name: "open-bandit",
  async run(options) {
    return [...(await uniformOnThompson(options)), ...(await thompsonOnUniform(options))];
  },
};

async function uniformOnThompson({ data, rng }: JudgeOptions): Promise<JudgeRow[]> {
  const uniform = new Float64Array(ITEMS).fill(1 / ITEMS);
  const { log } = await toColumns(readOpenBandit(dataFile(data, "obd/bts/men.csv.gz")), {
    target: () => uniform,
  });
  const set = "OBD men random|BTS";
  const facts = diagnose(log);
  const direct = directly(log);
  const gap = Math.max(
    Math.abs(ips(log).value - direct.ips),
    Math.abs(snips(log).value - direct.snips),
    Math.abs(facts.effectiveSize - direct.effectiveSize) / direct.effectiveSize,
  );
  return [
    row(set, "IPS", ips(log).value.toFixed(6), equalTo(ips(log).value, 0.003009, 6)),
    row(set, "SNIPS", snips(log).value.toFixed(6), equalTo(snips(log).value, 0.003189, 6)),
    row(set, "effective size", facts.effectiveSize.toFixed(1), equalTo(facts.effectiveSize, 656, 0)),
    row(set, "largest weight", facts.largestWeight.toFixed(1), equalTo(facts.largestWeight, 178, 0)),
    row(set, "gap to a direct computation", gap.toExponential(1), { text: "≤ 1e-12", met: gap <= 1e-12 }),
    row(set, "IPS bootstrap", span(log, rng)),
    row(set, "truth (its own log)", (await ownValue(dataFile(data, "obd/random/men.csv.gz"))).toFixed(4)),
    row(set, "verdict", judgePolicy(log, { rng }).kind),
  ];
}

async function thompsonOnUniform({ data, rng, scale }: JudgeOptions): Promise<JudgeRow[]> {
  const prior = await readBetaPrior(dataFile(data, "obd/prior_bts.yaml"), "men");
  const draws = Math.max(2000, Math.round(DRAWS * scale));
  const shares = thompsonPositions(prior, { draws, rng: rng.split("thompson") });
  const target = ({ position }: OpenBanditDecision) => shares[position]!;
  const { log } = await toColumns(readOpenBandit(dataFile(data, "obd/random/men.csv.gz")), { target });
  const set = "OBD men BTS|random";
  const facts = diagnose(log);
  const truth = await ownValue(dataFile(data, "obd/bts/men.csv.gz"));
  const interval = bootstrapInterval(ips(log), { rng: rng.split("interval") });
  const verdict = judgePolicy(log, { rng });
  if (verdict.kind === "refused") process.stderr.write(`${panelText(verdict)}\n`);
  return [
    row(set, "IPS", ips(log).value.toFixed(6), near(ips(log).value, 0.004534, 0.00005)),
    row(set, "SNIPS", snips(log).value.toFixed(6), near(snips(log).value, 0.004604, 0.00005)),
    row(set, "effective size", facts.effectiveSize.toFixed(0), near(facts.effectiveSize, 2467, 25)),
    row(set, "largest weight", facts.largestWeight.toFixed(1), near(facts.largestWeight, 10.7, 0.15)),
    row(set, "IPS bootstrap", span(log, rng)),
    row(set, "truth (its own log)", truth.toFixed(4), {
      text: "inside the interval",
      met: interval.low <= truth && truth <= interval.high,
    }),
    row(set, "verdict", verdict.kind),
    row(set, "Monte Carlo draws", `${draws} over ${POSITIONS} positions`),
  ];
}

function directly({ behaviour, reward, target }: LoggedDecisions): {
  ips: number;
  snips: number;
  effectiveSize: number;
} {
  let [w, wr, ww] = [0, 0, 0];
  for (let i = 0; i < reward.length; i++) {
    const weight = target[i]! / behaviour[i]!;
    w += weight;
    wr += weight * reward[i]!;
    ww += weight * weight;
  }
  return { ips: wr / reward.length, snips: wr / w, effectiveSize: (w * w) / ww };
}

async function ownValue(file: string): Promise<number> {
  let [clicks, rows] = [0, 0];
  for await (const { reward } of readOpenBandit(file)) {
    clicks += reward!;
    rows++;
  }
  return clicks / rows;
}

function span(log: LoggedDecisions, rng: JudgeOptions["rng"]): string {
  const { low, high } = bootstrapInterval(ips(log), { rng: rng.split("interval") });
  return `[${low.toFixed(5)}, ${high.toFixed(5)}]`;
}

/** Equal up to the Monte Carlo error of the target's probabilities. */
function near(value: number, wanted: number, by: number): { text: string; met: boolean } {
  return { text: `${wanted} ± ${by}`, met: Math.abs(value - wanted) <= by };
}
