/** Logs of three candidates of known price, whose quality depends on one of five kinds of question. The floor of a
 *  router that knows the kinds trades quality for cost. The area under every hull is known exactly. */
import { digestJson } from "../../src/base/digest.ts";
import { rngFrom } from "../../src/base/rng.ts";
import { hullArea } from "../../src/judge/evaluate/hull.ts";
import type { JudgedRow, RouterSetup } from "../../src/judge/index.ts";
import { type DecisionPolicy, parseStaticTable } from "../../src/policy/index.ts";

export interface HullWorld {
  readonly name: string;
  readonly rows: number;
  /** P(right) of each candidate for each kind of question. */
  readonly quality: readonly (readonly number[])[];
  /** The router's choice for each kind. */
  readonly choice: readonly number[];
  /** True if the true gain is at least four standard errors of its estimate. */
  readonly shows?: true;
}

const NAMES = ["small", "medium", "large"];
const PRICES = [0.1, 0.4, 1];
/** The router's confidence for each kind. Floors take these values. */
const SURE = [0.95, 0.85, 0.75, 0.65, 0.55];

const spread = (gain: number) => [
  [0.6 + gain, 0.62, 0.64],
  [0.55 + gain, 0.6, 0.64],
  [0.4, 0.5 + gain, 0.55],
  [0.2, 0.4, 0.6 + gain],
  [0.2, 0.35, 0.55 + gain],
];

export const HULL_WORLDS: readonly HullWorld[] = [
  {
    name: "no gain: all kinds alike, 600 rows",
    rows: 600,
    quality: SURE.map(() => [0.4, 0.55, 0.7]),
    choice: [0, 0, 1, 2, 2],
  },
  { name: "small gain, 600 rows", rows: 600, quality: spread(0), choice: [0, 0, 1, 2, 2] },
  { name: "large gain, 800 rows", rows: 800, quality: spread(0.2), choice: [0, 0, 1, 2, 2], shows: true },
];

export function hullLog({ rows, quality }: HullWorld, seed: number): JudgedRow[] {
  const rng = rngFrom(seed);
  return Array.from({ length: rows }, (_, i) => {
    const kind = rng.below(5);
    const chosen = rng.below(3);
    const reward = rng.float() < quality[kind]![chosen]! ? 1 : 0;
    return {
      id: `d-${i}`,
      unit: `d-${i}`,
      context: { prompt: "", fields: { kind } },
      candidates: NAMES.map((id) => ({ id, selectable: true, reasons: [], features: {} })),
      chosen,
      propensity: 1 / 3,
      behaviour: NAMES.map(() => 1 / 3),
      reward,
      measures: { reward, quality: reward, cost: PRICES[chosen]!, latency: null },
      prices: PRICES,
    };
  });
}

export function hullSetup({ choice, name }: HullWorld): RouterSetup {
  const policy: DecisionPolicy = {
    family: "router",
    revision: { id: "kinds" as never, digest: digestJson("hull-worlds", name) },
    answer: ({ fields }, candidates) => ({
      probabilities: candidates.map((_, c) => (c === choice[fields.kind as number] ? 1 : 0)),
      confidence: SURE[fields.kind as number]!,
    }),
  };
  const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: large", "hull worlds");
  return { policy, table, floor: 0, exploration: 0 };
}

/** Exact areas over all floors at a confidence that occurs, the floor 1 ("never"), and the single candidates. */
export function hullTruth({ quality, choice }: HullWorld): { all: number; singles: number; gain: number } {
  const at = (of: (kind: number) => number, single: boolean) => ({
    cost: SURE.reduce((sum, _, kind) => sum + PRICES[of(kind)]! / 5, 0),
    quality: SURE.reduce((sum, _, kind) => sum + quality[kind]![of(kind)]! / 5, 0),
    single,
  });
  const singles = NAMES.map((_, c) => at(() => c, true));
  const floors = [...SURE, 1].map((floor) => at((kind) => (SURE[kind]! >= floor ? choice[kind]! : 2), false));
  const [all, alone] = [hullArea([...singles, ...floors])!, hullArea(singles)!];
  return { all, singles: alone, gain: all - alone };
}
