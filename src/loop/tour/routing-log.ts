/** Makes a log of routing decisions for the tour: easy and hard questions that differ only in their words, a cheap
 *  model and a correct one.
 *  In: a seed. Out: decisions with their probabilities and rewards in parts. Pure. */
import { type Rng, rngFrom } from "../../base/index.ts";
import type { LoggedRow } from "../../learn/index.ts";
import { decide, parseStaticTable } from "../../policy/index.ts";

const ROWS = 1500;
const HARD = ["proof", "lemma", "axiom"] as const;
const EASY = ["total", "count", "month"] as const;
const MODELS = ["quick", "deep"] as const;
const COST = { quick: 0.1, deep: 1 } as const;
const COST_WEIGHT = -0.2;
const STARTED_AT_MS = 1_700_000_000_000;

/** Router that made the log: it chooses "deep" except in three of ten choices. */
const LOGGING = {
  table: parseStaticTable("schema: rollbook.static-table.v1\ndefault: [deep, quick]", "demo"),
  floor: 0,
  exploration: 0.6,
};

export function makeRoutingLog(seed: bigint): LoggedRow[] {
  const rng = rngFrom(seed).split("routing");
  return Array.from({ length: ROWS }, (_, i) => makeRow(i, rng.split(i)));
}

function makeRow(i: number, rng: Rng): LoggedRow {
  const hard = rng.below(2) === 1;
  const words = hard ? HARD : EASY;
  const prompt = `Please work out the ${words[rng.below(words.length)]} of item ${10 + rng.below(90)}`;
  const candidates = MODELS.map((id) => ({ id, selectable: true, reasons: [], features: {} }));
  const { chosen, probabilities } = decide({ prompt, fields: {} }, candidates, LOGGING, rng);
  const model = MODELS[chosen]!;
  const right = rng.float() < (model === "deep" || !hard ? 0.95 : 0.2) ? 1 : 0;
  return {
    id: `question-${i}`,
    task: `question-${i}`,
    session: `session-${i}`,
    chain: `question-${i}`,
    family: "router",
    atMs: STARTED_AT_MS + i * 1000,
    source: "synthetic",
    context: { prompt, fields: {} },
    candidates: candidates.map((one, c) => ({ ...one, probability: probabilities[c]! })),
    chosen,
    propensity: probabilities[chosen]!,
    reward: right + COST_WEIGHT * COST[model],
    terminal: true,
    terms: { right: { value: right, weight: 1 }, cost: { value: COST[model], weight: COST_WEIGHT } },
    rewardFrom: "demo",
  };
}
