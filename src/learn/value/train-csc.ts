/** Cost-sensitive classification in one pass, as in Vowpal Wabbit's `--cb_type ips|dm|dr`, with progressive validation.
 *  In: decisions with propensities, or with all outcomes. Out: a "value" model of one regression per candidate, and
 *  estimates of the policy from each decision before it was learned from.
 *  Rows are taken in the order of their decisions. */
import { given, RollbookError } from "../../base/index.ts";
import type { ValueSpec } from "../../policy/index.ts";
import { makeOnlineBandit, type OnlineBandit } from "../online/index.ts";
import { type DecisionData, type LoggedRow, type Outcomes, outcomesOf } from "../rows/index.ts";
import { deriveValueSpec, type EncodedRows, encodeRows } from "./fit-columns.ts";
import { rangeOf } from "./learners.ts";
import type { ValueReport, ValueTrained } from "./train-value.ts";
import { columnTensors } from "./value-tensors.ts";

export type CscType = "ips" | "dm" | "dr";

interface CscOptions {
  readonly spec?: ValueSpec | undefined;
  /** Target of each candidate's regression: r/p, the reward if it was chosen, or q̂ + (r − q̂)/p. */
  readonly type?: CscType | undefined;
  readonly rate?: number | undefined;
}

/** Estimated reward of the sequence of policies, each from before it saw the decision. */
interface Progressive {
  readonly rows: number;
  readonly ips: number;
  readonly dm: number;
  readonly dr: number;
}

/** Estimates after 1, 2, 4, … decisions and after the last, as Vowpal Wabbit prints them. */
export interface CscReport extends ValueReport {
  readonly progressive: readonly Progressive[];
}

export function trainCsc(
  data: DecisionData,
  options: CscOptions,
): ValueTrained & { readonly report: CscReport } {
  const { type = "dr", rate = 0.5 } = options;
  const outcomes = outcomesOf(data.rows as readonly LoggedRow[]);
  const spec = options.spec ?? deriveValueSpec(outcomes.rows);
  const encoded = encodeRows(outcomes.rows, spec);
  const { size } = encoded.rows;
  const arms = outcomes.arms.length;
  const { low, high } = rangeOf(outcomes.target);
  const rewards = high > low ? { low, high } : { low: low - 1, high: low + 1 };
  const bandit = makeOnlineBandit({ actions: arms, kind: type, rate, size: size + 1, rewards });
  const progressive = learnInOrder(bandit, outcomes, encoded);
  const weights = new Float64Array(size * arms);
  const bias = new Float64Array(arms);
  for (let a = 0; a < arms; a++) {
    const own = bandit.weightsOf(a);
    for (let f = 0; f < size; f++) weights[f * arms + a] = own[f]!;
    bias[a] = own[size]!;
  }
  const learner = `csc ${type} rate=${rate}`;
  return {
    model: {
      kind: "value",
      spec,
      arms: outcomes.arms,
      config: { algorithm: "csc", data: data.digest, type, rate, ...given({ measure: "reward" }) },
      settings: { low, high, range: high > low ? high - low : 1 },
      tensors: {
        ...columnTensors(encoded),
        linear_weights: { shape: [size, arms], data: weights },
        linear_bias: { shape: [arms], data: bias },
      },
    },
    report: {
      ...{ fullInformation: outcomes.full, rows: outcomes.rows.length, outcomes: outcomes.target.length },
      ...{ features: size, tried: [], parts: [{ learner, share: 1 }], progressive },
    },
  };
}

function learnInOrder(
  bandit: OnlineBandit,
  outcomes: Outcomes<LoggedRow>,
  encoded: EncodedRows,
): Progressive[] {
  const order = [...outcomes.rows.keys()].sort(
    (a, b) => (outcomes.rows[a]!.atMs ?? 0) - (outcomes.rows[b]!.atMs ?? 0) || a - b,
  );
  const sums = { ips: 0, dm: 0, dr: 0 };
  const seen: Progressive[] = [];
  for (const [i, r] of order.entries()) {
    const terms = visitRow(bandit, { outcomes, encoded, r });
    for (const name of ["ips", "dm", "dr"] as const) sums[name] += terms[name];
    const rows = i + 1;
    if ((rows & i) === 0 || rows === order.length)
      seen.push({ rows, ips: sums.ips / rows, dm: sums.dm / rows, dr: sums.dr / rows });
  }
  return seen;
}

function visitRow(
  bandit: OnlineBandit,
  { outcomes, encoded, r }: { outcomes: Outcomes<LoggedRow>; encoded: EncodedRows; r: number },
): { ips: number; dm: number; dr: number } {
  const { arm, target, start, full, arms, rows } = outcomes;
  const vector = withBias(encoded, r);
  const at = start[r]!;
  if (full) {
    const rewards = arms.map(() => Number.NaN);
    for (let t = at; t < start[r + 1]!; t++) rewards[arm[t]!] = target[t]!;
    if (rewards.some(Number.isNaN)) throw uneven(rows[r]!.id);
    const reward = bandit.visitAll(vector, rewards);
    return { ips: reward, dm: reward, dr: reward };
  }
  const { propensity, id } = rows[r]!;
  if (propensity === null)
    throw new RollbookError(
      "missing-propensity",
      { decision: id },
      `decision ${id}: its propensity was not logged, and cost-sensitive classification weighs by it. Log the probability of every choice, or use \`train auto\`.`,
    );
  return bandit.visit(vector, { action: arm[at]!, reward: target[at]!, propensity });
}

/** The row with a constant 1 after its features. */
function withBias({ rows }: EncodedRows, r: number) {
  const [from, to] = [rows.start[r]!, rows.start[r + 1]!];
  const count = to - from + 1;
  const indices = new Int32Array(count).fill(rows.size);
  const values = new Float64Array(count).fill(1);
  indices.set(rows.indices.subarray(from, to));
  values.set(rows.values.subarray(from, to));
  return { indices, values, count };
}

function uneven(id: string): RollbookError {
  return new RollbookError(
    "bad-training-data",
    { decision: id },
    `decision ${id} lacks candidates that others have. Cost-sensitive classification needs the same ones in every row; \`train auto\` does not.`,
  );
}
