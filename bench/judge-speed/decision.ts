/** One decision of a trained router policy on a prompt of 1 000 characters, in process, through `decide()`. */
import { digestJson } from "../../src/base/digest.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { trainBc } from "../../src/learn/index.ts";
import {
  DEFAULT_FEATURES,
  type DecisionCandidate,
  decide,
  parseStaticTable,
  policyOf,
  sealCheckpoint,
} from "../../src/policy/index.ts";

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
  const data = { rows, digest: digestJson("bench.decisions", ROWS), batches: [] };
  const { model } = trainBc(data, { spec: DEFAULT_FEATURES, seed: 1n, maxIterations: 10 });
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
  times.sort();
  return Object.entries(BARS).map(([name, bar]) => {
    const value = times[Math.floor((DECISIONS * Number(name.slice(1))) / 100)]!;
    return {
      decision: `${CHARS} characters, ${IDS.length} candidates, ${DEFAULT_FEATURES.wordBuckets} buckets`,
      quantile: name,
      µs: value.toFixed(1),
      bar: `≤ ${bar}`,
      met: value <= bar ? "yes" : "NO",
    };
  });
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
