/** Bandits as they answer: UCB1, LinUCB, and Thompson sampling with Beta or linear-Gaussian posteriors.
 *  In: a bandit model (its sufficient statistics). Out: distributions over the selectable candidates.
 *  UCB rules are deterministic: ties share. Thompson's probabilities are Monte Carlo estimates with a stated number of draws
 *  and a floor; `decide()` draws from that very distribution, so what is logged is what was drawn from, exactly.
 *  The draws are seeded by the model, and the same ones serve every question: one question, one answer, and no generator
 *  runs while a request waits. Does not learn: learn/train does. */
import { drawBeta, drawNormal, log, type Rng, rngFrom } from "../base/index.ts";
import type { PolicyModel } from "./checkpoint.ts";
import type { DecisionCandidate, DecisionPolicy, PolicyAnswer } from "./decision.ts";
import { makeFeatureReader } from "./features.ts";
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

/** θ̂ᵀx + α√(xᵀA⁻¹x), one model per candidate (Li et al., 2010); an unseen one has A = λI and θ̂ = 0. */
export function linUcbPolicy(model: PolicyModel): Answer {
  const predict = linearBeliefs(model);
  const alpha = model.settings.alpha ?? 1;
  return (context, candidates) => {
    const { mean, variance } = predict(context);
    // Without a width the means decide: the variance takes most of the time.
    if (alpha === 0) return shareBest(model, candidates, mean);
    return shareBest(model, candidates, (one) => mean(one) + alpha * Math.sqrt(variance(one)));
  };
}

/** Rewards in 0 … 1 as Bernoulli trials, Beta(1, 1) before any. Nothing in it hangs on the question but who may be chosen. */
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

/** θ ~ N(A⁻¹b, v²A⁻¹) per candidate (Agrawal and Goyal, 2013); only the score's law is needed, which is normal. */
export function thompsonLinearPolicy(model: PolicyModel): Answer {
  const predict = linearBeliefs(model);
  const spread = model.settings.spread ?? 1;
  const normals = normalTable(model);
  return (context, candidates) => {
    const { mean, variance } = predict(context);
    const means = candidates.map(mean);
    const deviations = candidates.map((one) => spread * Math.sqrt(variance(one)));
    const table = normals(candidates.length);
    return monteCarlo(
      model,
      candidates,
      (draw, c) => means[c]! + deviations[c]! * table[draw * candidates.length + c]!,
    );
  };
}

/** Candidate sets that a policy remembers. */
const MOST_ANSWERS = 1024;

/** Standard normals, draws × candidates, made once for every number of candidates. */
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

/** The share of draws each candidate wins, mixed with `floor` for every selectable one. */
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

/** All mass on the best, evenly where several are. Confidence is the margin over the next one, as a share of the range of
 *  rewards; checkpoints without that range share it among ties. */
function shareBest(
  { settings: { range } }: PolicyModel,
  candidates: readonly DecisionCandidate[],
  worth: (candidate: DecisionCandidate) => number,
): PolicyAnswer {
  const values = new Array<number>(candidates.length);
  let [top, next, best] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  for (let c = 0; c < candidates.length; c++) {
    const value = candidates[c]!.selectable ? worth(candidates[c]!) : Number.NEGATIVE_INFINITY;
    values[c] = value;
    // A broken checkpoint has no best: the caller refuses what is not a distribution.
    if (Number.isNaN(value)) return { probabilities: values.fill(Number.NaN), confidence: 0 };
    if (value > top) [top, next, best] = [value, top, 1];
    else if (value === top) best++;
    else if (value > next) next = value;
  }
  if (top === Number.NEGATIVE_INFINITY) return evenAnswer(candidates);
  const probabilities = values.map((value) => (value === top ? 1 / best : 0));
  if (range === undefined) return { probabilities, confidence: 1 / best };
  const margin = Number.isFinite(top) && Number.isFinite(next) ? Math.min(1, (top - next) / range) : 1;
  return { probabilities, confidence: best > 1 ? 0 : margin };
}

/** Choices and rewards of each arm. */
export function tallies(model: PolicyModel) {
  const counts = tensorOf(model, "counts", [model.arms.length]);
  const sums = tensorOf(model, "sums", [model.arms.length]);
  return { counts, sums, known: armIndex(model.arms) };
}

/** Mean and variance of each candidate's reward under its own ridge model. */
export function linearBeliefs(model: PolicyModel) {
  const reader = makeFeatureReader(firstSpecOf(model));
  const { size } = reader;
  const inverse = tensorOf(model, "inverse", [model.arms.length, size, size]);
  const weights = tensorOf(model, "weights", [model.arms.length, size]);
  const known = armIndex(model.arms);
  const ridge = model.settings.ridge ?? 1;
  return (context: Parameters<Answer>[0]) => {
    const { indices, values, count } = reader.context(context);
    const mean = ({ id }: DecisionCandidate): number => {
      const arm = known.get(id);
      if (arm === undefined) return 0;
      const first = arm * size;
      let sum = 0;
      for (let e = 0; e < count; e++) sum += weights[first + indices[e]!]! * values[e]!;
      return sum;
    };
    const variance = ({ id }: DecisionCandidate): number => {
      const arm = known.get(id);
      let sum = 0;
      if (arm === undefined) {
        for (let e = 0; e < count; e++) sum += (values[e]! * values[e]!) / ridge;
        return sum;
      }
      const first = arm * size;
      // Four rows at a time: each has its own sum in its own order, and none waits for another's additions.
      let e = 0;
      for (; e + 3 < count; e += 4) {
        const [a, b, c, d] = [
          (first + indices[e]!) * size,
          (first + indices[e + 1]!) * size,
          (first + indices[e + 2]!) * size,
          (first + indices[e + 3]!) * size,
        ];
        let [sa, sb, sc, sd] = [0, 0, 0, 0];
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
    };
    return { mean, variance };
  };
}

function rngOf({ settings }: PolicyModel): Rng {
  return rngFrom(settings.seed ?? 0);
}
