/** Answers of the bandit policies: UCB1, LinUCB, and Thompson sampling with Beta or linear-Gaussian posteriors.
 *  In: a bandit model (its sufficient statistics). Out: distributions over the selectable candidates.
 *  UCB rules are deterministic: tied candidates share the probability. Thompson's probabilities are Monte Carlo
 *  estimates with a stated number of draws and a floor. `decide()` draws from that distribution, so the logged
 *  propensity is exact. The model seeds the draws, and every question uses the same draws. So one question has one
 *  answer, and no generator runs while a request waits. Does not learn: learn/train does. */
import { drawBeta, drawNormal, log, type Rng, rngFrom } from "../base/index.ts";
import type { PolicyModel } from "./checkpoint.ts";
import type { DecisionCandidate, DecisionContext, DecisionPolicy, PolicyAnswer } from "./decision.ts";
import { type FeatureReader, makeFeatureReader, type SparseVector } from "./features.ts";
import { armIndex, evenAnswer, firstSpecOf, tensorOf } from "./model-parts.ts";

type Answer = DecisionPolicy["answer"];

/** mean + c·√(2 ln N / n), untried candidates first (Auer, Cesa-Bianchi and Fischer, 2002). */
export function ucb1Policy(model: PolicyModel): Answer {
  const { counts, sums, known } = tallies(model);
  const total = counts.reduce((sum, each) => sum + each, 0);
  const width = model.settings.exploration ?? 1;
  return (_context, candidates) =>
    shareBest(model, candidates, (candidate) => {
      const arm = known.get(candidate.id);
      const count = arm === undefined ? 0 : counts[arm]!;
      if (count === 0) return Number.POSITIVE_INFINITY;
      return sums[arm!]! / count + width * Math.sqrt((2 * log(Math.max(total, 1))) / count);
    });
}

/** θ̂ᵀx + α√(xᵀA⁻¹x), one model per candidate (Li et al., 2010). An unseen candidate has A = λI and θ̂ = 0. */
export function linUcbPolicy(model: PolicyModel): Answer {
  const beliefs = new LinearBeliefs(model);
  const alpha = model.settings.alpha ?? 1;
  // With α = 0 the means alone decide. Skip the variance: it takes most of the time.
  const worth =
    alpha === 0
      ? (one: DecisionCandidate) => beliefs.mean(one)
      : (one: DecisionCandidate) => beliefs.mean(one) + alpha * Math.sqrt(beliefs.variance(one));
  return (context, candidates) => {
    beliefs.read(context);
    return shareBest(model, candidates, worth);
  };
}

/** Rewards in 0 … 1 as Bernoulli trials, with prior Beta(1, 1).
 *  The answer depends only on the selectable candidates. */
export function thompsonBetaPolicy(model: PolicyModel): Answer {
  const { counts, sums, known } = tallies(model);
  const answers = new Map<string, PolicyAnswer>();
  return (_context, candidates) => {
    const key = JSON.stringify(candidates.map(({ id, selectable }) => [id, selectable]));
    const before = answers.get(key);
    if (before !== undefined) return before;
    const rng = rngOf(model).split(key);
    const answer = monteCarlo(model, candidates, (_draw, c) => {
      const arm = known.get(candidates[c]!.id);
      const won = arm === undefined ? 0 : sums[arm]!;
      const lost = arm === undefined ? 0 : counts[arm]! - won;
      return drawBeta(1 + won, 1 + lost, rng);
    });
    if (answers.size >= MOST_ANSWERS) answers.clear();
    answers.set(key, answer);
    return answer;
  };
}

/** θ ~ N(A⁻¹b, v²A⁻¹) per candidate (Agrawal and Goyal, 2013).
 *  Only the score's distribution is needed; it is normal. */
export function thompsonLinearPolicy(model: PolicyModel): Answer {
  const beliefs = new LinearBeliefs(model);
  const spread = model.settings.spread ?? 1;
  const normals = normalTable(model);
  return (context, candidates) => {
    beliefs.read(context);
    const means = candidates.map((one) => beliefs.mean(one));
    const deviations = candidates.map((one) => spread * Math.sqrt(beliefs.variance(one)));
    const table = normals(candidates.length);
    return monteCarlo(
      model,
      candidates,
      (draw, c) => means[c]! + deviations[c]! * table[draw * candidates.length + c]!,
    );
  };
}

/** Number of candidate sets whose answers a policy remembers. */
const MOST_ANSWERS = 1024;

/** Standard normals, draws × candidates. Made once for each number of candidates. */
function normalTable(model: PolicyModel): (candidates: number) => Float64Array {
  const tables = new Map<number, Float64Array>();
  return (candidates) => {
    let table = tables.get(candidates);
    if (table === undefined) {
      const rng = rngOf(model).split(candidates);
      table = Float64Array.from({ length: (model.settings.draws ?? DEFAULT_DRAWS) * candidates }, () =>
        drawNormal(rng),
      );
      tables.set(candidates, table);
    }
    return table;
  };
}

export const DEFAULT_DRAWS = 256;
export const DEFAULT_FLOOR = 0.01;

/** Each candidate's probability: the share of draws it wins, mixed with `floor` for every selectable candidate. */
function monteCarlo(
  { settings }: PolicyModel,
  candidates: readonly DecisionCandidate[],
  sample: (draw: number, candidate: number) => number,
): PolicyAnswer {
  const { draws = DEFAULT_DRAWS, floor = DEFAULT_FLOOR } = settings;
  const wins = new Float64Array(candidates.length);
  for (let i = 0; i < draws; i++) {
    let best = -1;
    let top = Number.NEGATIVE_INFINITY;
    for (let c = 0; c < candidates.length; c++) {
      if (!candidates[c]!.selectable) continue;
      const value = sample(i, c);
      if (best >= 0 && value <= top) continue;
      best = c;
      top = value;
    }
    if (best < 0) return evenAnswer(candidates);
    wins[best] = wins[best]! + 1;
  }
  const selectable = candidates.filter((one) => one.selectable).length;
  const even = Math.min(floor, 1 / selectable);
  const probabilities = candidates.map((one, c) =>
    one.selectable ? even + (1 - even * selectable) * (wins[c]! / draws) : 0,
  );
  return { probabilities, confidence: Math.max(...probabilities), monteCarlo: { draws, floor: even } };
}

/** Puts all probability on the best candidate; tied candidates share it evenly. Confidence is the margin over the next
 *  candidate, as a share of the range of rewards.
 *  For a checkpoint without that range, confidence is 1 / number of ties. */
function shareBest(
  { settings: { range } }: PolicyModel,
  candidates: readonly DecisionCandidate[],
  worth: (candidate: DecisionCandidate) => number,
): PolicyAnswer {
  const values = new Array<number>(candidates.length);
  let top = Number.NEGATIVE_INFINITY;
  let next = Number.NEGATIVE_INFINITY;
  let best = 0;
  for (let c = 0; c < candidates.length; c++) {
    const value = candidates[c]!.selectable ? worth(candidates[c]!) : Number.NEGATIVE_INFINITY;
    values[c] = value;
    // A broken checkpoint has no best candidate. The caller refuses these NaN probabilities.
    if (Number.isNaN(value)) return { probabilities: values.fill(Number.NaN), confidence: 0 };
    if (value > top) {
      next = top;
      top = value;
      best = 1;
    } else if (value === top) best++;
    else if (value > next) next = value;
  }
  if (top === Number.NEGATIVE_INFINITY) return evenAnswer(candidates);
  for (let c = 0; c < values.length; c++) values[c] = values[c] === top ? 1 / best : 0;
  const probabilities = values;
  if (range === undefined) return { probabilities, confidence: 1 / best };
  const margin = Number.isFinite(top) && Number.isFinite(next) ? Math.min(1, (top - next) / range) : 1;
  return { probabilities, confidence: best > 1 ? 0 : margin };
}

/** Number of choices and sum of rewards of each arm. */
export function tallies(model: PolicyModel) {
  const counts = tensorOf(model, "counts", [model.arms.length]);
  const sums = tensorOf(model, "sums", [model.arms.length]);
  return { counts, sums, known: armIndex(model.arms) };
}

/** Mean and variance of each candidate's reward under its own ridge model. Holds one question at a time. */
export class LinearBeliefs {
  readonly #reader: FeatureReader;
  readonly #inverse: Float64Array;
  readonly #weights: Float64Array;
  readonly #known: ReadonlyMap<string, number>;
  readonly #ridge: number;
  #vector: SparseVector;

  constructor(model: PolicyModel) {
    this.#reader = makeFeatureReader(firstSpecOf(model));
    const { size } = this.#reader;
    this.#inverse = tensorOf(model, "inverse", [model.arms.length, size, size]);
    this.#weights = tensorOf(model, "weights", [model.arms.length, size]);
    this.#known = armIndex(model.arms);
    this.#ridge = model.settings.ridge ?? 1;
    this.#vector = this.#reader.context({ prompt: "", fields: {} });
  }

  /** Sets the question that `mean` and `variance` describe. */
  read(context: DecisionContext): void {
    this.#vector = this.#reader.context(context);
  }

  mean({ id }: DecisionCandidate): number {
    const arm = this.#known.get(id);
    if (arm === undefined) return 0;
    const { indices, values, count } = this.#vector;
    const weights = this.#weights;
    const first = arm * this.#reader.size;
    let sum = 0;
    for (let e = 0; e < count; e++) sum += weights[first + indices[e]!]! * values[e]!;
    return sum;
  }

  variance({ id }: DecisionCandidate): number {
    const arm = this.#known.get(id);
    if (arm === undefined) return this.#varianceUnseen();
    const { indices, values, count } = this.#vector;
    const inverse = this.#inverse;
    const { size } = this.#reader;
    const first = arm * size;
    let sum = 0;
    let e = 0;
    // Four rows at a time. Each row adds to its own sum in its own order, so the four additions run in parallel.
    for (; e + 3 < count; e += 4) {
      const a = (first + indices[e]!) * size;
      const b = (first + indices[e + 1]!) * size;
      const c = (first + indices[e + 2]!) * size;
      const d = (first + indices[e + 3]!) * size;
      let sa = 0;
      let sb = 0;
      let sc = 0;
      let sd = 0;
      for (let f = 0; f < count; f++) {
        const at = indices[f]!;
        const value = values[f]!;
        sa += inverse[a + at]! * value;
        sb += inverse[b + at]! * value;
        sc += inverse[c + at]! * value;
        sd += inverse[d + at]! * value;
      }
      sum = sum + values[e]! * sa + values[e + 1]! * sb + values[e + 2]! * sc + values[e + 3]! * sd;
    }
    for (; e < count; e++) {
      const row = (first + indices[e]!) * size;
      let own = 0;
      for (let f = 0; f < count; f++) own += inverse[row + indices[f]!]! * values[f]!;
      sum += values[e]! * own;
    }
    return Math.max(0, sum);
  }

  /** Variance of a candidate without a model: xᵀx / λ. */
  #varianceUnseen(): number {
    const { values, count } = this.#vector;
    let sum = 0;
    for (let e = 0; e < count; e++) sum += (values[e]! * values[e]!) / this.#ridge;
    return sum;
  }
}

function rngOf({ settings }: PolicyModel): Rng {
  return rngFrom(settings.seed ?? 0);
}
