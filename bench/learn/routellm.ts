/** Routing one question at a time: CQL with γ = 0 on RouteLLM's MMLU answers, 5-fold, against a logistic router.
 *  Every question teaches two rows, one for each model with whether it was right. */

import { digestJson } from "../../src/base/digest.ts";
import { type LoggedRow, trainCql } from "../../src/learn/index.ts";
import { DEFAULT_FEATURES } from "../../src/policy/index.ts";
import { meanOutput, mlpOutputs } from "../../src/policy/mlp-policy.ts";
import { loggedRow } from "../../test/support/chain-world.ts";
import { dataFile, type JudgePart, row } from "../judge/part.ts";
import { apgrOf } from "../judge/routellm.ts";
import { type RoutedQuestion, readRouteLlm } from "../support/judge/routellm.ts";

const FOLDS = 5;
/** A logistic regression on hashed 1- and 2-grams of the prompt, 5-fold on the same rows. */
const LOGISTIC = 0.641;
const MODELS = ["weak", "strong"] as const;
const SPEC = { ...DEFAULT_FEATURES, wordBuckets: 1024 };

export const routellm: JudgePart = {
  name: "routellm",
  async run({ data, rng }) {
    const { questions } = await readRouteLlm(dataFile(data, "routellm/mmlu"));
    const scores = new Float64Array(questions.length);
    const order = rng.split("folds").shuffle([...questions.keys()]);
    for (let fold = 0; fold < FOLDS; fold++) {
      const rows = order.filter((_, i) => i % FOLDS !== fold).flatMap((q) => rowsOf(questions[q]!, q));
      const config = {
        ...{ spec: SPEC, hidden: [64], steps: 1500, batch: 128, rate: 1e-3, decay: 15 },
        ...{ conservatism: 0.01, members: 2, holdout: 0 },
      };
      const digest = digestJson("bench.v1", fold);
      const outputs = mlpOutputs(trainCql({ rows, digest }, config, rng.split(fold)).model);
      for (const q of order.filter((_, i) => i % FOLDS === fold)) {
        const found = outputs({ prompt: questions[q]!.prompt, fields: {} });
        // Arms are in the order of their names: strong, weak.
        scores[q] = meanOutput(found, 0) - meanOutput(found, 1);
      }
    }
    const value = apgrOf(questions, scores);
    return [
      row(
        `RouteLLM MMLU, ${questions.length} questions`,
        "APGR of CQL at γ = 0, prompt alone, 5-fold",
        value.toFixed(3),
        {
          ...{ text: `≥ ${LOGISTIC} (logistic)`, met: value >= LOGISTIC },
        },
      ),
    ];
  },
};

function rowsOf(question: RoutedQuestion, q: number): LoggedRow[] {
  return MODELS.map((model, chosen) => ({
    ...loggedRow({
      ...{ id: `q${q}-${model}`, task: `q${q}`, chosen, reward: question[model] ? 1 : 0 },
      context: { prompt: question.prompt, fields: {} },
    }),
    candidates: MODELS.map((id) => ({ id, selectable: true, reasons: [], features: {}, probability: 0.5 })),
  }));
}
