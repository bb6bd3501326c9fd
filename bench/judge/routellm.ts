/** RouteLLM's benchmark answers, in-domain: the share of the gap between weak and strong model that a router recovers.
 *  Nested 5-fold: ridge models of (strong right − weak right) score each fold after training on the other four. The
 *  score is the mean of two models, one for each word weighting. Their l2 is chosen on those four folds: fitted on a
 *  half, by squared error on a quarter. Mean of 5 fold seeds. Bands are percentiles over resampled questions, paired
 *  with the length baseline. */
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { apgr, frontier } from "../../src/judge/evaluate/frontier.ts";
import { gatherRows, type SparseRows, wordScaleOf } from "../../src/learn/rows/index.ts";
import { DEFAULT_FEATURES, makeFeatureReader } from "../../src/policy/index.ts";
import { predictRow, trainRidge } from "../support/judge/ridge.ts";
import { type RoutedQuestion, readRouteLlm } from "../support/judge/routellm.ts";
import { pickRows, rescaleWords } from "../support/judge/sparse-rows.ts";
import { dataFile, type JudgeOptions, type JudgePart, type JudgeRow, row } from "./part.ts";

const FOLDS = 5;
const SEEDS = 5;
const DRAWS = 400;
/** Settings are tried on half of the training rows. The loss is a mean, so the full set needs half the penalty. */
const GRID = [1.4e-3, 4e-3, 1.2e-2];
/** Word weights with and without rarity: the two views err differently, so their mean errs less than either. */
const WEIGHTINGS = [false, true];
const INNER_SHARE = 0.5;

export const routellm: JudgePart = {
  name: "routellm",
  async run(options) {
    return [...(await mmlu(options)), ...(await gsm8k(options))];
  },
};

async function mmlu(options: JudgeOptions): Promise<JudgeRow[]> {
  const { questions } = await readRouteLlm(dataFile(options.data, "routellm/mmlu"));
  const prompt = measure(questions, { ...options, subject: false });
  const subject = measure(questions, { ...options, subject: true });
  const set = "RouteLLM MMLU";
  return [
    ...baselines(set, questions),
    row(set, "APGR, prompt alone", figures(prompt), atLeast(prompt.mean, 0.67)),
    row(set, "  minus length, 95 %", span(prompt.gain), above(prompt.gain)),
    row(set, "APGR, subject known", figures(subject), atLeast(subject.mean, 0.69)),
    row(set, "  minus length, 95 %", span(subject.gain), above(subject.gain)),
  ];
}

async function gsm8k(options: JudgeOptions): Promise<JudgeRow[]> {
  const { questions } = await readRouteLlm(dataFile(options.data, "routellm/gsm8k"));
  const prompt = measure(questions, { ...options, subject: false });
  const set = "RouteLLM GSM8K";
  return [
    ...baselines(set, questions),
    row(set, "APGR, prompt alone", figures(prompt)),
    row(set, "  minus length, 95 %", span(prompt.gain), above(prompt.gain)),
  ];
}

interface Measured {
  readonly mean: number;
  readonly seeds: readonly number[];
  readonly gain: { readonly mean: number; readonly low: number; readonly high: number };
}

function measure(
  questions: readonly RoutedQuestion[],
  { rng, scale, subject }: JudgeOptions & { subject: boolean },
): Measured {
  const { rows, denseSize } = readRows(questions, subject);
  const targets = Float64Array.from(questions, (one) => Number(one.strong) - Number(one.weak));
  const scores = Array.from({ length: Math.max(1, Math.round(SEEDS * scale)) }, (_, seed) =>
    crossScores({ rows, denseSize, targets, rng: rngFrom(seed + 1) }),
  );
  const seeds = scores.map((score) => apgrOf(questions, score));
  const draws = Math.max(50, Math.round(DRAWS * scale));
  return {
    mean: mean(seeds),
    seeds,
    gain: pairedGain(questions, scores, { draws, rng: rng.split("draws") }),
  };
}

function readRows(questions: readonly RoutedQuestion[], subject: boolean) {
  const fields = subject ? [{ name: "subject", kind: "category" as const, buckets: 65_536 }] : [];
  const reader = makeFeatureReader({ ...DEFAULT_FEATURES, wordBuckets: 1 << 18, fields });
  const rows = gatherRows(questions, reader.size, (one) =>
    reader.context({ prompt: one.prompt, fields: { subject: one.subject } }),
  );
  return { rows, denseSize: reader.denseSize };
}

interface Trainable {
  readonly rows: SparseRows;
  readonly denseSize: number;
  readonly targets: Float64Array;
}

/** Scores each question by a model that has not seen its fold. */
function crossScores({ rng, ...data }: Trainable & { rng: Rng }): Float64Array {
  const order = rng.shuffle([...data.targets.keys()]);
  const scores = new Float64Array(order.length);
  for (let fold = 0; fold < FOLDS; fold++) {
    const train = order.filter((_, i) => i % FOLDS !== fold);
    const held = order.filter((_, i) => i % FOLDS === fold);
    for (const idf of WEIGHTINGS)
      score(data, { train, held, idf, l2: choosePenalty(data, train, idf) * INNER_SHARE }).forEach(
        (each, i) => {
          const at = held[i]!;
          scores[at] = scores[at]! + each / WEIGHTINGS.length;
        },
      );
  }
  return scores;
}

function choosePenalty(data: Trainable, train: readonly number[], idf: boolean): number {
  const held = train.filter((_, i) => i % 4 === 0);
  const rest = train.filter((_, i) => i % 4 === 1 || i % 4 === 3);
  const errors = GRID.map((l2) => {
    const predicted = score(data, { train: rest, held, idf, l2 });
    return predicted.reduce((sum, each, i) => sum + (each - data.targets[held[i]!]!) ** 2, 0);
  });
  return GRID[errors.indexOf(Math.min(...errors))]!;
}

function score(
  { rows, denseSize, targets }: Trainable,
  options: { train: readonly number[]; held: readonly number[]; idf: boolean; l2: number },
): Float64Array {
  const { train, held, idf, l2 } = options;
  const own = pickRows(rows, train);
  const scale = idf ? wordScaleOf(own, denseSize) : undefined;
  const weighted = (some: SparseRows) => (scale === undefined ? some : rescaleWords(some, scale, denseSize));
  const { weights } = trainRidge(
    { rows: weighted(own), targets: Float64Array.from(train, (i) => targets[i]!) },
    { l2, tolerance: 1e-3 },
  );
  const others = weighted(pickRows(rows, held));
  return Float64Array.from(held, (_, i) => predictRow(others, weights, i));
}

function pairedGain(
  questions: readonly RoutedQuestion[],
  scores: readonly Float64Array[],
  { draws, rng }: { draws: number; rng: Rng },
): Measured["gain"] {
  const length = Float64Array.from(questions, (one) => one.prompt.length);
  const gain = (picked: readonly number[]) => {
    const some = picked.map((i) => questions[i]!);
    const apgrs = scores.map((each) =>
      apgrOf(
        some,
        Float64Array.from(picked, (i) => each[i]!),
      ),
    );
    return (
      mean(apgrs) -
      apgrOf(
        some,
        Float64Array.from(picked, (i) => length[i]!),
      )
    );
  };
  const gains = Array.from({ length: draws }, () => gain(questions.map(() => rng.below(questions.length))));
  gains.sort((a, b) => a - b);
  const at = (share: number) => gains[Math.min(draws - 1, Math.floor(share * draws))]!;
  return { mean: gain([...questions.keys()]), low: at(0.025), high: at(0.975) };
}

export function apgrOf(questions: readonly RoutedQuestion[], scores: Float64Array): number {
  const weak = questions.map((one) => Number(one.weak));
  const strong = questions.map((one) => Number(one.strong));
  return apgr(frontier({ score: scores, weak, strong }));
}

function baselines(set: string, questions: readonly RoutedQuestion[]): JudgeRow[] {
  const share = (which: "weak" | "strong") =>
    (100 * mean(questions.map((one) => Number(one[which])))).toFixed(2);
  const length = Float64Array.from(questions, (one) => one.prompt.length);
  const oracle = Float64Array.from(questions, (one) => Number(one.strong) - Number(one.weak));
  return [
    row(set, "questions, weak / strong", `${questions.length}, ${share("weak")} / ${share("strong")}`),
    row(set, "APGR, length alone", apgrOf(questions, length).toFixed(3)),
    row(set, "APGR, oracle", apgrOf(questions, oracle).toFixed(3)),
  ];
}

function figures({ mean: average, seeds }: Measured): string {
  return `${average.toFixed(4)} (${seeds.map((each) => each.toFixed(3)).join(" ")})`;
}

function span({ mean: average, low, high }: Measured["gain"]): string {
  return `${average.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]`;
}

function atLeast(value: number, bar: number): { text: string; met: boolean } {
  return { text: `≥ ${bar}`, met: value >= bar };
}

function above({ low }: Measured["gain"]): { text: string; met: boolean } {
  return { text: "whole band > 0", met: low > 0 };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}
