/** Routing one question at a time: CQL with γ = 0 on RouteLLM's MMLU answers, 5-fold, against a logistic router.
 *  Every question teaches two rows, one for each model with whether it was right. The network corrects a linear model of all
 *  words; the row without it shows what that is worth. */

import { digestJson } from "../../src/base/digest.ts";
import type { Rng } from "../../src/base/rng.ts";
import { type CqlConfig, type LoggedRow, trainCql } from "../../src/learn/index.ts";
import { DEFAULT_FEATURES } from "../../src/policy/index.ts";
import { meanOutput, mlpOutputs, widePartOf } from "../../src/policy/mlp-policy.ts";
import { loggedRow } from "../../test/support/chain-world.ts";
import { dataFile, type JudgePart, row } from "../judge/part.ts";
import { apgrOf } from "../judge/routellm.ts";
import { type RoutedQuestion, readRouteLlm } from "../support/judge/routellm.ts";
import { meanOf, seedsOf } from "./part.ts";

const FOLDS = 5;
/** A logistic regression on hashed 1- and 2-grams of the prompt, 5-fold on the same rows. */
const LOGISTIC = 0.641;
const MODELS = ["weak", "strong"] as const;
/** Chosen by 4-fold cross-validation on the training part of the first fold. */
const WIDE: CqlConfig = {
  ...{ spec: { ...DEFAULT_FEATURES, wordBuckets: 256 }, hidden: [64], steps: 1500, batch: 128, rate: 1e-3 },
  ...{ decay: 15, conservatism: 0.01, members: 2, holdout: 0, wide: true },
};
const DEEP: CqlConfig = { ...WIDE, spec: { ...DEFAULT_FEATURES, wordBuckets: 1024 }, wide: false };

export const routellm: JudgePart = {
  name: "routellm",
  async run({ data, rng, scale }) {
    const { questions } = await readRouteLlm(dataFile(data, "routellm/mmlu"));
    const set = `RouteLLM MMLU, ${questions.length} questions`;
    const figure = "APGR at γ = 0, prompt alone, 5-fold";
    const seeds = seedsOf(rng, Math.max(1, Math.round(scale)));
    const wide = seeds.map((seed) => crossApgr(questions, WIDE, seed));
    const deep = seeds.map((seed) => crossApgr(questions, DEEP, seed));
    const show = (values: readonly number[]) =>
      `${meanOf(values).toFixed(4)} (${values.map((each) => each.toFixed(3)).join(" ")})`;
    const values = wide.map(({ whole }) => whole);
    const linear = wide.map((each) => each.linear);
    return [
      row(set, `CQL, wide and deep: ${figure}`, show(values), {
        ...{ text: `≥ ${LOGISTIC} (logistic)`, met: meanOf(values) >= LOGISTIC },
      }),
      row(set, `its linear part alone: ${figure}`, show(linear)),
      row(set, `CQL, the network alone: ${figure}`, show(deep.map(({ whole }) => whole))),
    ];
  },
};

/** Each question scored by a policy that has not seen its fold, and by its linear part. */
function crossApgr(questions: readonly RoutedQuestion[], config: CqlConfig, rng: Rng) {
  const [scores, linear] = [new Float64Array(questions.length), new Float64Array(questions.length)];
  const order = rng.split("folds").shuffle([...questions.keys()]);
  for (let fold = 0; fold < FOLDS; fold++) {
    const rows = order.filter((_, i) => i % FOLDS !== fold).flatMap((q) => rowsOf(questions[q]!, q));
    const digest = digestJson("bench.v1", fold);
    const { model } = trainCql({ rows, digest }, config, rng.split(fold));
    const outputs = mlpOutputs(model);
    const wide = widePartOf(model);
    for (const q of order.filter((_, i) => i % FOLDS === fold)) {
      const context = { prompt: questions[q]!.prompt, fields: {} };
      const found = outputs(context);
      // Arms are in the order of their names: strong, weak.
      scores[q] = meanOutput(found, 0) - meanOutput(found, 1);
      const [strong = 0, weak = 0] = wide?.(context) ?? [];
      linear[q] = strong - weak;
    }
  }
  return { whole: apgrOf(questions, scores), linear: apgrOf(questions, linear) };
}

function rowsOf(question: RoutedQuestion, q: number): LoggedRow[] {
  return MODELS.map((model, chosen) => ({
    ...loggedRow({
      ...{ id: `q${q}-${model}`, task: `q${q}`, chosen, reward: question[model] ? 1 : 0 },
      context: { prompt: question.prompt, fields: {} },
    }),
    candidates: MODELS.map((id) => ({ id, selectable: true, reasons: [], features: {}, probability: 0.5 })),
  }));
}
