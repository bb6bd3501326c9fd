/** Routing one question at a time: CQL with γ = 0 on RouteLLM's MMLU answers, 5-fold, compared with a logistic router
 *  on the same folds. Every question gives two rows, one for each model, with reward 1 or 0 for right or wrong. The
 *  network corrects a linear model of all words; the row without that model shows its value. In pieces: --trials FILE
 *  --seconds N; a trial is a fold. */

import { digestJson } from "../../src/base/digest.ts";
import type { Rng } from "../../src/base/rng.ts";
import { type CqlConfig, type LoggedRow, trainCql } from "../../src/learn/index.ts";
import { outcomesOf } from "../../src/learn/rows/index.ts";
import { deriveValueSpec, encodeRows } from "../../src/learn/value/fit-columns.ts";
import { fitLogistic, rangeOf } from "../../src/learn/value/learners.ts";
import { columnTensors, linearTensors } from "../../src/learn/value/value-tensors.ts";
import { DEFAULT_FEATURES, type DecisionContext } from "../../src/policy/index.ts";
import { meanOutput, mlpOutputs, widePartOf, wideValues } from "../../src/policy/mlp-policy.ts";
import { loggedRow } from "../../test/support/chain-world.ts";
import { dataFile, type JudgePart, type JudgeRow, row } from "../judge/part.ts";
import { apgrOf } from "../judge/routellm.ts";
import { type RoutedQuestion, readRouteLlm } from "../support/judge/routellm.ts";
import { seedsOf, spread } from "./part.ts";

const FOLDS = 5;
/** APGR of a logistic regression on hashed 1- and 2-grams of the prompt, 5-fold on the same rows. */
const LOGISTIC = 0.641;
/** The penalty that cross-validation chooses for `train logistic` on the training part of another seed's first fold. */
const LOGISTIC_L2 = 0.25;
const MODELS = ["weak", "strong"] as const;
/** Chosen by 4-fold cross-validation on the training part of the first fold. */
const WIDE: CqlConfig = {
  ...{ spec: { ...DEFAULT_FEATURES, wordBuckets: 256 }, hidden: [64], steps: 1500, batch: 128, rate: 1e-3 },
  ...{ decay: 15, conservatism: 0.01, members: 2, holdout: 0, wide: true },
};
const DEEP: CqlConfig = { ...WIDE, spec: { ...DEFAULT_FEATURES, wordBuckets: 1024 }, wide: false };

export const routellm: JudgePart = {
  name: "routellm",
  async run({ data, rng, scale, trials }) {
    const { questions } = await readRouteLlm(dataFile(data, "routellm/mmlu"));
    const splits = seedsOf(rng, Math.max(1, Math.round(scale))).flatMap((seed) => splitsOf(questions, seed));
    const routers = trials.all("routellm", splits.length, (t) => scoreRouters(splits[t]!));
    if (routers === undefined) return [];
    const deep = trials.all("routellm, network alone", FOLDS, (t) => learn(splits[t]!, DEEP).whole) ?? [];
    const apgrs = (scores: readonly (readonly number[])[]) =>
      scores.map((each, t) => {
        const held = splits[t]!.held.map((q) => questions[q]!);
        return apgrOf(held, Float64Array.from(each));
      });
    return table(questions.length, {
      whole: apgrs(routers.map(({ whole }) => whole)),
      linear: apgrs(routers.map(({ linear }) => linear)),
      logistic: apgrs(routers.map(({ logistic }) => logistic)),
      deep: apgrs(deep),
    });
  },
};

/** APGR of the questions of each fold. Every fold has its own seed. */
type Apgrs = Readonly<Record<"whole" | "linear" | "logistic" | "deep", readonly number[]>>;

function table(count: number, { whole, linear, logistic, deep }: Apgrs): JudgeRow[] {
  const set = `RouteLLM MMLU, ${count} questions`;
  const show = (values: readonly number[]) =>
    `${spread(values).text} (${values.map((each) => each.toFixed(4)).join(" ")})`;
  const gain = spread(whole.map((each, s) => each - logistic[s]!));
  const mean = spread(whole).mean;
  return [
    row(set, "CQL at γ = 0, wide and deep: APGR, prompt alone, 5-fold", show(whole), {
      ...{ text: `≥ ${LOGISTIC} (a logistic router)`, met: mean >= LOGISTIC },
    }),
    row(set, "its linear part alone", show(linear)),
    row(set, "train logistic, the same folds", show(logistic)),
    row(set, "CQL − train logistic, paired", gain.text, { text: "≥ 0", met: gain.mean >= 0 }),
    ...(deep.length === 0 ? [] : [row(set, "CQL, the network alone, first split", show(deep))]),
  ];
}

interface Split {
  readonly rows: readonly LoggedRow[];
  /** Questions without rows, as indices and as contexts. */
  readonly held: readonly number[];
  readonly contexts: readonly DecisionContext[];
  readonly rng: Rng;
}

function splitsOf(questions: readonly RoutedQuestion[], rng: Rng): Split[] {
  const order = rng.split("folds").shuffle([...questions.keys()]);
  return Array.from({ length: FOLDS }, (_, fold) => {
    const held = order.filter((_, i) => i % FOLDS === fold);
    return {
      rows: order.filter((_, i) => i % FOLDS !== fold).flatMap((q) => rowsOf(questions[q]!, q)),
      contexts: held.map((q) => ({ prompt: questions[q]!.prompt, fields: {} })),
      ...{ held, rng: rng.split(fold) },
    };
  });
}

/** Each router's expected gain of the strong model, for unseen questions. */
function scoreRouters(split: Split) {
  return { ...learn(split, WIDE), logistic: scoreLogistic(split) };
}

function learn({ rows, contexts, rng }: Split, config: CqlConfig): { whole: number[]; linear: number[] } {
  const { model } = trainCql({ rows, digest: digestJson("bench.v1", "fold") }, config, rng);
  const outputs = mlpOutputs(model);
  const wide = widePartOf(model);
  // Arms are sorted by name: strong, weak.
  return {
    whole: contexts.map((context) => {
      const found = outputs(context);
      return meanOutput(found, 0) - meanOutput(found, 1);
    }),
    linear: wide === undefined ? [] : contexts.map((context) => strongOverWeak(wide(context))),
  };
}

/** The model that `train logistic` fits after it has chosen its penalty. */
function scoreLogistic({ rows, contexts }: Split): number[] {
  const outcomes = outcomesOf(rows, "reward");
  const encoded = encodeRows(outcomes.rows, deriveValueSpec(outcomes.rows));
  const data = { rows: encoded.rows, outcomes, arms: MODELS.length };
  const picked = Int32Array.from(outcomes.rows.keys());
  const predict = wideValues({
    ...{ arms: outcomes.arms, spec: encoded.spec },
    settings: { ...rangeOf(outcomes.target), logistic_share: 1 },
    tensors: {
      ...columnTensors(encoded),
      ...linearTensors("logistic", data, fitLogistic(data, { own: LOGISTIC_L2 }, { picked })),
    },
  });
  return contexts.map((context) => strongOverWeak(predict(context)));
}

function strongOverWeak([strong = 0, weak = 0]: Float64Array): number {
  return strong - weak;
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
