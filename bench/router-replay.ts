/** RouteLLM's GSM8K questions replayed through the router that a gateway serves: the number of strong calls for its
 *  accuracy, compared with random mixing of the two models at equal accuracy. 5-fold: a LinUCB policy trained on the
 *  other folds, where both models answered, routes every question. The reward is 1 for a right answer, minus the price
 *  of a strong call; each price is a point.
 *  Bands are percentiles over resampled questions, the same for router and mixing. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Rng, rngFrom, systemClock } from "../src/base/index.ts";
import { trainPolicy } from "../src/book/train/index.ts";
import { modelsOf } from "../src/convert/routing-jsonl.ts";
import { checkRouterConfig, openRouter } from "../src/serve/index.ts";
import { dataFile } from "./judge/part.ts";
import { printTable } from "./support/interleave.ts";
import { type RoutedQuestion, readRouteLlm } from "./support/judge/routellm.ts";
import type { Bench } from "./support/programs.ts";

const FOLDS = 5;
const DRAWS = 4000;
/** Prices of a strong call, in right answers. */
const PRICES = [0.15, 0.2, 0.25, 0.3];
const ALPHA = 0.001;
const MODELS = ["weak", "strong"] as const;

export const bench: Bench = {
  summary:
    "GSM8K through the served router: strong calls at equal accuracy, against random mixing (--data DIR)",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        data: { type: "string", default: process.env.ROLLBOOK_DATA ?? "../shared/data" },
        seed: { type: "string", default: "1" },
        json: { type: "boolean", default: false },
      },
    });
    const { questions } = await readRouteLlm(dataFile(values.data, "routellm/gsm8k"));
    const rng = rngFrom(BigInt(values.seed));
    const order = rng.split("folds").shuffle([...questions.keys()]);
    const rows = [];
    for (const price of PRICES) {
      const strong = await routed(questions, { order, price });
      rows.push(rowOf(price, questions, { strong, rng: rng.split("draws") }));
    }
    printTable(rows, args);
  },
};

/** True for questions that the strong model answers. */
async function routed(
  questions: readonly RoutedQuestion[],
  { order, price }: { order: readonly number[]; price: number },
): Promise<boolean[]> {
  const strong = new Array<boolean>(questions.length);
  for (let fold = 0; fold < FOLDS; fold++) {
    const folder = mkdtempSync(join(tmpdir(), "rollbook-replay-"));
    try {
      const train = order.filter((_, i) => i % FOLDS !== fold).map((at) => questions[at]!);
      const router = await routerOf(folder, train, price);
      for (const at of order.filter((_, i) => i % FOLDS === fold)) {
        const context = { prompt: questions[at]!.prompt, fields: {} };
        const { decision } = router.choose({ alias: "auto", call: `q-${at}.0`, context, candidates });
        strong[at] = MODELS[decision.chosen] === "strong";
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return strong;
}

const candidates = MODELS.map((id) => ({ id, selectable: true, reasons: [], features: {} }));

async function routerOf(folder: string, train: readonly RoutedQuestion[], price: number) {
  const data = join(folder, "decisions.jsonl");
  const lines = train.flatMap((question, i) => MODELS.map((model) => lineOf(question, { i, model, price })));
  writeFileSync(data, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const checkpoint = join(folder, "policy");
  await trainPolicy(
    { data },
    {
      ...{ learner: { kind: "linucb", alpha: ALPHA }, id: "replay", out: checkpoint },
      split: { unit: "task", shares: [1, 0, 0], salt: "" },
    },
  );
  const config = {
    checkpoint,
    allowUngated: true,
    exploration: 0,
    floor: 0,
    candidates: { weak: {}, strong: {} },
  };
  return openRouter(checkRouterConfig(config), { clock: systemClock });
}

function lineOf(
  { prompt, weak, strong }: RoutedQuestion,
  { i, model, price }: { i: number; model: (typeof MODELS)[number]; price: number },
): object {
  const reward = model === "strong" ? Number(strong) - price : Number(weak);
  return {
    ...{ schema_version: 1, decision_id: `q-${i}-${model}`, session_id: `q-${i}`, task_id: `q-${i}` },
    ...{ agent_role: "router", timestamp: "2026-01-01T00:00:00Z", ...modelsOf(MODELS, model) },
    ...{ propensity: 0.5, reward, terminal: true, data_source: "real" },
    state: { prompt, fields: {}, candidates: candidates.map((one) => ({ ...one, probability: 0.5 })) },
  };
}

interface Point {
  readonly share: number;
  readonly accuracy: number;
  /** Share of strong calls at which random mixing has the same accuracy. */
  readonly mixing: number;
}

function pointOf(questions: readonly RoutedQuestion[], strong: readonly boolean[], picked: Iterable<number>) {
  let [count, calls, right, weak, best] = [0, 0, 0, 0, 0];
  for (const at of picked) {
    const question = questions[at]!;
    count++;
    calls += Number(strong[at]);
    right += Number(strong[at] ? question.strong : question.weak);
    weak += Number(question.weak);
    best += Number(question.strong);
  }
  return { share: calls / count, accuracy: right / count, mixing: (right - weak) / (best - weak) } as Point;
}

function rowOf(
  price: number,
  questions: readonly RoutedQuestion[],
  { strong, rng }: { strong: readonly boolean[]; rng: Rng },
): Record<string, string | number> {
  const { share, accuracy, mixing } = pointOf(questions, strong, questions.keys());
  const saved = Array.from({ length: DRAWS }, () => {
    const picked = questions.map(() => rng.below(questions.length));
    const drawn = pointOf(questions, strong, picked);
    return drawn.mixing - drawn.share;
  }).sort((a, b) => a - b);
  const at = (part: number) => saved[Math.floor(part * DRAWS)]!;
  const percent = (value: number) => (100 * value).toFixed(1);
  return {
    "price of a strong call": price,
    questions: questions.length,
    "accuracy, %": percent(accuracy),
    "strong calls, %": percent(share),
    "random mixing, %": percent(mixing),
    "saved, points": percent(mixing - share),
    "95 %": `[${percent(at(0.025))}, ${percent(at(0.975))}]`,
    "whole band > 0": at(0.025) > 0 ? "yes" : "NO",
  };
}
