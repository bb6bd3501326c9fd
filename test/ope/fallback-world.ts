/** The published synthetic routing generator (seed 42, 650 rows). A router chooses between a primary and a fallback
 *  model, and chooses the fallback more often on hard tasks. All probabilities and means are known. So the value of any
 *  policy on these contexts is known exactly, and so is the error of every estimate. */
import type { LoggedDecisions } from "../../src/judge/ope/index.ts";
import { PythonRandom } from "./python-random.ts";

const ROLES = 8;
const NOISE = 0.05;

export interface FallbackWorld {
  /** The target policy that always chooses the primary, as a policy below its confidence floor does. */
  readonly alwaysPrimary: LoggedDecisions;
  readonly truth: { readonly primary: number; readonly fallback: number; readonly behaviour: number };
}

export function fallbackWorld({
  seed = 42,
  rows = 650,
}: {
  seed?: number;
  rows?: number;
} = {}): FallbackWorld {
  const random = new PythonRandom(seed);
  const reward = new Float64Array(rows);
  const behaviour = new Float64Array(rows);
  const target = new Float64Array(rows);
  const chosen = new Int32Array(rows);
  const behaviourAll = new Float64Array(rows * 2);
  const targetAll = new Float64Array(rows * 2);
  const values = new Float64Array(rows * 2);
  const truth = { primary: 0, fallback: 0, behaviour: 0 };
  for (let i = 0; i < rows; i++) {
    random.below(ROLES);
    const complexity = random.random();
    const failures = Math.floor(random.random() * 5);
    const p = Math.min(1, 0.15 + 0.55 * complexity + 0.08 * failures);
    const fallback = random.random() < p;
    const means = [
      0.85 - 0.45 * complexity - 0.08 * failures,
      0.85 - 0.1 * complexity - 0.03 * failures,
    ] as const;
    reward[i] = composite(means[fallback ? 1 : 0] + random.uniform(-NOISE, NOISE));
    behaviour[i] = fallback ? p : 1 - p;
    target[i] = fallback ? 0 : 1;
    chosen[i] = fallback ? 1 : 0;
    behaviourAll.set([1 - p, p], i * 2);
    targetAll.set([1, 0], i * 2);
    values.set([complexity, failures], i * 2);
    const [primary, other] = [expectedComposite(means[0]), expectedComposite(means[1])];
    truth.primary += primary / rows;
    truth.fallback += other / rows;
    truth.behaviour += ((1 - p) * primary + p * other) / rows;
  }
  const candidates = { count: 2, chosen, target: targetAll, behaviour: behaviourAll };
  return { alwaysPrimary: { reward, behaviour, target, candidates, context: { width: 2, values } }, truth };
}

/** reward_v1 adds 0.25 to the score of a verified result (score ≥ ½), and subtracts 0.15 otherwise. */
function composite(score: number): number {
  return score >= 0.5 ? score + 0.25 : score - 0.15;
}

/** Expectation of reward_v1 when the score is uniform within NOISE of `mean`. */
function expectedComposite(mean: number): number {
  const verified = Math.min(1, Math.max(0, (mean + NOISE - 0.5) / (2 * NOISE)));
  return mean + 0.25 * verified - 0.15 * (1 - verified);
}
