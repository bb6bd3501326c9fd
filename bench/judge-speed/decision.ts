/** One decision of a trained router policy on a prompt of 1 000 characters, in process, through `decide()`. */
import { digestJson } from "../../src/base/digest.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { type DecisionData, trainBc } from "../../src/learn/index.ts";
import {
  DEFAULT_FEATURES,
  type DecisionCandidate,
  decide,
  type PolicyModel,
  parseStaticTable,
  policyOf,
  sealCheckpoint,
} from "../../src/policy/index.ts";
import { trainLinUcb, trainThompsonLinear } from "../../test/support/train-bandits.ts";

const CHARS = 1000;
const ROWS = 400;
const WARM_UP = 5000;
const DECISIONS = 20_000;
const BARS = { p50: 50, p99: 250 };
const IDS = ["small", "medium", "large"];

export function decisionSpeed(): Record<string, string | number>[] {
  const rng = rngFrom(1);
  const candidates: DecisionCandidate[] = IDS.map((id) => ({
    id,
    selectable: true,
    reasons: [],
    features: {},
  }));
  const prompts = Array.from({ length: ROWS }, () => promptOf(rng));
  const rows = prompts.map((prompt, i) => ({
    id: `d${i}`,
    context: { prompt, fields: {} },
    candidates,
    chosen: rng.below(IDS.length),
    propensity: 1 / IDS.length,
    reward: rng.float(),
  }));
  const data = { rows, digest: digestJson("bench.decisions", ROWS) };
  return Object.entries(trained(data)).flatMap(([name, model]) => {
    const times = timeDecisions(model, { rows, candidates, rng });
    return Object.entries(BARS).map(([quantile, bar]) => {
      const value = times[Math.floor((DECISIONS * Number(quantile.slice(1))) / 100)]!;
      return {
        [`decision, ${CHARS} characters, ${IDS.length} candidates`]: name,
        quantile,
        µs: value.toFixed(1),
        bar: `≤ ${bar}`,
        met: value <= bar ? "yes" : "NO",
      };
    });
  });
}

function trained(data: DecisionData): Record<string, PolicyModel> {
  const dense = { ...DEFAULT_FEATURES, wordBuckets: 16 };
  return {
    [`clone, ${DEFAULT_FEATURES.wordBuckets} buckets`]: trainBc(data, {
      spec: DEFAULT_FEATURES,
      seed: 1n,
      maxIterations: 10,
    }).model,
    "LinUCB, 16 buckets": trainLinUcb(data, { spec: dense }),
    "linear Thompson, 256 draws": trainThompsonLinear(data, { spec: dense, seed: 1 }),
  };
}

/** Sorted times of single decisions, in µs. */
function timeDecisions(
  model: PolicyModel,
  { rows, candidates, rng }: { rows: DecisionData["rows"]; candidates: DecisionCandidate[]; rng: Rng },
): Float64Array {
  const facts = { family: "router", id: "r1", batches: [], seed: 1n, producedAtMs: 0 };
  const router = {
    policy: policyOf(sealCheckpoint(model, facts)),
    table: parseStaticTable(`schema: rollbook.static-table.v1\ndefault: [${IDS}]\n`, "table"),
    floor: 0,
    exploration: 0.05,
  };
  const times = new Float64Array(DECISIONS);
  for (let i = -WARM_UP; i < DECISIONS; i++) {
    const { context } = rows[(i + WARM_UP) % ROWS]!;
    const start = process.hrtime.bigint();
    decide(context, candidates, router, rng);
    if (i >= 0) times[i] = Number(process.hrtime.bigint() - start) / 1000;
  }
  return times.sort();
}

/** Words of 2 to 9 letters. */
function promptOf(rng: Rng): string {
  let text = "";
  while (text.length < CHARS) {
    for (let left = 2 + rng.below(8); left > 0; left--) text += String.fromCharCode(97 + rng.below(26));
    text += " ";
  }
  return text.slice(0, CHARS);
}
