/** Logs of two candidates, "new" and "old", chosen at random independently of the context. Outcomes have a given
 *  distribution: rare failures, sparse clicks, heavy tails, copies of rows. "new" is judged against "old", and the
 *  truth is known. */
import { digestJson } from "../../src/base/digest.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import type { JudgedRow, RouterSetup } from "../../src/judge/index.ts";
import { type DecisionPolicy, parseStaticTable } from "../../src/policy/index.ts";

export interface RareWorld {
  readonly name: string;
  readonly rows: number;
  /** The reward of one choice. */
  readonly draw: (arm: "new" | "old", rng: Rng) => number;
  /** Mean reward of "new" and of "old". */
  readonly means: { readonly new: number; readonly old: number };
  /** P("new") in the log; 0.5 unless stated. */
  readonly share?: number;
  /** Number of copies of every row, each with a new id. */
  readonly copies?: number;
}

/** Worlds in which "new" is worse by exactly the margin, or by more: a pass is an error. */
export const WORSE: readonly (RareWorld & { readonly margin: number })[] = [
  { ...rates("success 1 → .98, 200 rows", 200, 0.98, 1), margin: 0.02 },
  { ...rates("clicks .005 → 0, 500 rows", 500, 0, 0.005), margin: 0.005 },
  {
    name: "−100 with probability .002, 400 rows",
    rows: 400,
    draw: (arm, rng) => (arm === "new" && rng.float() < 0.002 ? -100 : 0),
    means: { new: -0.2, old: 0 },
    margin: 0.05,
  },
  { ...rates("clicks .010 → .005, 2000 rows", 2000, 0.005, 0.01), margin: 0.005 },
  { ...rates("success .95 → .9, 500 rows", 500, 0.9, 0.95), margin: 0.05 },
  { ...losses("lognormal losses, 500 rows", 500, (rng) => Math.exp(normal(rng)), Math.exp(0.5)), margin: 0 },
  {
    ...losses(
      "Pareto losses (exponent 2.2), 1000 rows",
      1000,
      (rng) => (1 - rng.float()) ** (-1 / 2.2),
      2.2 / 1.2,
    ),
    margin: 0,
  },
  { ...rates("success .7 → .6, every row twice", 150, 0.6, 0.7), copies: 2, margin: 0.1 },
  { ...rates("success .7 → .6, every row five times", 60, 0.6, 0.7), copies: 5, margin: 0.1 },
];

/** Worlds whose intervals must cover the truth. */
export const COVERED: readonly RareWorld[] = [
  rates("clicks .005, 1000 rows", 1000, 0.005, 0.005),
  rates("clicks .005, 4000 rows", 4000, 0.005, 0.005),
  { ...rates("clicks .02, 1000 rows, a tenth explored", 1000, 0.02, 0.02), share: 0.1 },
  rates("success .98 and 1, 500 rows", 500, 0.98, 1),
  losses("lognormal losses, 1000 rows", 1000, (rng) => Math.exp(normal(rng)), Math.exp(0.5)),
  rates("success .6 and .65, 300 rows", 300, 0.6, 0.65),
];

/** Worlds with a gain of three margins. */
export const BETTER: readonly (RareWorld & { readonly margin: number })[] = [
  { ...rates("success .6 → .66, 2000 rows", 2000, 0.66, 0.6), margin: 0.02 },
  { ...rates("success .85 → .91, 2000 rows", 2000, 0.91, 0.85), margin: 0.02 },
  {
    name: "scores of deviation .3, gain .045, 2000 rows",
    rows: 2000,
    draw: (arm, rng) => (arm === "new" ? 0.545 : 0.5) + 0.3 * normal(rng),
    means: { new: 0.545, old: 0.5 },
    margin: 0.015,
  },
];

export function rareLog(world: RareWorld, seed: number): JudgedRow[] {
  const rng = rngFrom(seed);
  const { share = 0.5, copies = 1 } = world;
  const rows: JudgedRow[] = [];
  for (let i = 0; i < world.rows; i++) {
    const arm = rng.float() < share ? "new" : "old";
    const reward = world.draw(arm, rng);
    const context = { prompt: "", fields: { size: rng.float() } };
    for (let copy = 0; copy < copies; copy++)
      rows.push({
        id: `d-${i}-${copy}`,
        unit: `d-${i}-${copy}`,
        context,
        candidates: CANDIDATES,
        chosen: arm === "new" ? 0 : 1,
        propensity: arm === "new" ? share : 1 - share,
        behaviour: [share, 1 - share],
        reward,
        measures: { reward, quality: reward, cost: null, latency: null },
      });
  }
  return rows;
}

const CANDIDATES = ["new", "old"].map((id) => ({
  id,
  selectable: true,
  reasons: [],
  probability: 0.5,
  features: {},
}));

const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: old", "rare worlds");
const always: DecisionPolicy = {
  family: "router",
  revision: { id: "new" as never, digest: digestJson("rare-worlds", "new") },
  answer: (_, candidates) => ({
    probabilities: candidates.map(({ id }) => (id === "new" ? 1 : 0)),
    confidence: 1,
  }),
};
export const ALWAYS_NEW: RouterSetup = { policy: always, table, floor: 0, exploration: 0 };
export const ALWAYS_OLD: RouterSetup = { policy: undefined, table, floor: 0, exploration: 0 };

function rates(name: string, rows: number, fresh: number, old: number): RareWorld {
  return {
    name,
    rows,
    draw: (arm, rng) => (rng.float() < (arm === "new" ? fresh : old) ? 1 : 0),
    means: { new: fresh, old },
  };
}

/** "old" always has a loss of `mean`; "new" has it on average. */
function losses(name: string, rows: number, draw: (rng: Rng) => number, mean: number): RareWorld {
  return {
    name,
    rows,
    draw: (arm, rng) => -(arm === "new" ? draw(rng) : mean),
    means: { new: -mean, old: -mean },
  };
}

function normal(rng: Rng): number {
  return Math.sqrt(-2 * Math.log(1 - rng.float())) * Math.cos(2 * Math.PI * rng.float());
}
