/** A softmax policy, linear in the features: P(a) ∝ exp((w_a·x + v·z_a) / T) over the selectable candidates it knows.
 *  In: a "softmax-linear" model. Out: its answers. A candidate that the policy has never seen gets probability 0. If it
 *  knows no candidate, it answers with confidence 0 and the table decides. */
import { softmax } from "../base/index.ts";
import type { PolicyModel } from "./checkpoint.ts";
import type { DecisionPolicy, PolicyAnswer } from "./decision.ts";
import { makeFeatureReader } from "./features.ts";
import { armIndex, evenAnswer, firstSpecOf, tensorOf } from "./model-parts.ts";

/** Parts of a score: the weights of arms and of candidate features, and the feature reader. */
export function linearParts(model: PolicyModel) {
  const { arms, settings } = model;
  const spec = firstSpecOf(model);
  const scale = spec.wordWeights === "idf" ? tensorOf(model, "word_scale", [spec.wordBuckets]) : undefined;
  const reader = makeFeatureReader(spec, scale);
  const weights = tensorOf(model, "weights", [arms.length, reader.size]);
  const shared = tensorOf(model, "candidate_weights", [spec.candidate.length]);
  return { spec, reader, weights, shared, known: armIndex(arms), sharpness: 1 / (settings.temperature ?? 1) };
}

export function linearPolicy(model: PolicyModel): DecisionPolicy["answer"] {
  const { reader, weights, shared, known, sharpness } = linearParts(model);
  return (context, candidates) => {
    const { indices, values, count } = reader.context(context);
    const scores = new Float64Array(candidates.length).fill(Number.NEGATIVE_INFINITY);
    let any = false;
    for (let c = 0; c < candidates.length; c++) {
      const candidate = candidates[c]!;
      const arm = candidate.selectable ? known.get(candidate.id) : undefined;
      if (arm === undefined) continue;
      any = true;
      const base = arm * reader.size;
      let score = 0;
      for (let e = 0; e < count; e++) score += weights[base + indices[e]!]! * values[e]!;
      if (shared.length > 0) {
        const own = reader.candidate(candidate);
        for (let j = 0; j < own.length; j++) score += shared[j]! * own[j]!;
      }
      scores[c] = score * sharpness;
    }
    return any ? answerOf(scores) : evenAnswer(candidates);
  };
}

function answerOf(scores: Float64Array): PolicyAnswer {
  softmax(scores);
  let confidence = 0;
  for (let c = 0; c < scores.length; c++) if (scores[c]! > confidence) confidence = scores[c]!;
  return { probabilities: Array.from(scores), confidence };
}
