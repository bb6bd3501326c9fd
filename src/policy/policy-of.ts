/** Builds the policy that `decide()` asks from a checkpoint. */
import { linUcbPolicy, thompsonBetaPolicy, thompsonLinearPolicy, ucb1Policy } from "./bandit-policy.ts";
import type { Checkpoint, PolicyModel } from "./checkpoint.ts";
import type { DecisionPolicy } from "./decision.ts";
import { linearPolicy } from "./linear-policy.ts";
import { mlpPolicy } from "./mlp-policy.ts";
import { rememberAnswers } from "./remember-answers.ts";
import { valuePolicy } from "./value/index.ts";

export function policyOf({ model, revision }: Checkpoint): DecisionPolicy {
  const { family, id, digest } = revision.record;
  const { spec } = model;
  const answer = answerOf(model);
  // Do not remember answers that read an embedding: one request may lack it, and its answer would be returned later.
  const readsVector = "embedding" in spec && spec.embedding !== undefined;
  const names = spec.fields.map(({ name }) => name);
  return {
    family,
    revision: { id, digest },
    answer: readsVector ? answer : rememberAnswers(answer, names),
  };
}

/** The model's answers without a revision, for judging a policy that is not sealed yet. */
export function answerOf(model: PolicyModel): DecisionPolicy["answer"] {
  switch (model.kind) {
    case "softmax-linear":
      return linearPolicy(model);
    case "ucb1":
      return ucb1Policy(model);
    case "linucb":
      return linUcbPolicy(model);
    case "thompson-beta":
      return thompsonBetaPolicy(model);
    case "thompson-linear":
      return thompsonLinearPolicy(model);
    case "value":
      return valuePolicy(model);
    case "mlp-greedy":
    case "mlp-softmax":
      return mlpPolicy(model);
    default:
      return model.kind satisfies never;
  }
}
