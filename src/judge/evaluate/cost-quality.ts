/** The quality of a router at each cost, with bands.
 *  Two views of one policy: by share of calls to the more expensive of two models (RouteLLM's APGR and CPT), and by money:
 *  the upper hull of the points that floors and single candidates reach (RouterBench's area).
 *  In: evaluation data, a router. Out: points, figures and percentile bands; every replicate resamples whole units. A point
 *  that the log does not support gets a reason instead of a number. */
import { distribution, type Router } from "../../policy/index.ts";
import { bootstrap, type Interval, percentileInterval } from "../ope/index.ts";
import type { Distribution, EvaluationData } from "./evaluation-data.ts";
import { apgr, byScore, cpt, type FrontierPoint, rankedShares } from "./frontier.ts";
import type { Measure } from "./judged-row.ts";

export interface Banded {
  /** Undefined where no share recovers that much. */
  readonly value: number | undefined;
  readonly band: Pick<Interval, "low" | "high"> | undefined;
}

export interface CostQuality {
  readonly weak: string;
  readonly strong: string;
  readonly points: readonly FrontierPoint[];
  readonly apgr: Banded;
  readonly cpt50: Banded;
  readonly cpt80: Banded;
  /** Present where cost is known. */
  readonly hull?: Hull;
}

export interface Hull {
  /** One point per floor, from "always the policy" to "never", and one per single candidate. */
  readonly points: readonly { readonly name: string; readonly cost: number; readonly quality: number }[];
  /** Points that the log does not support, with the reasons. */
  readonly refused: readonly RefusedPoint[];
  /** Mean quality over the cost range of the single candidates, along the hull of all points. Absent if a point is. */
  readonly area?: Banded;
  /** The same for the single candidates alone: what mixing them at random would reach. Absent if one of them is. */
  readonly singlesArea?: Banded;
}

interface RefusedPoint {
  readonly name: string;
  readonly reasons: readonly string[];
}

const PARTS = 10;
/** Floors at these quantiles of the policy's confidence. */
const FLOORS = [0, 0.1, 0.25, 0.5, 0.75, 0.9] as const;

export function costQualityOf(
  data: EvaluationData,
  { router, quality }: { router: Router; quality: Measure },
): CostQuality | { readonly absent: string } {
  if (router.policy === undefined) return { absent: "no policy decides, so there is nothing to trade" };
  const pair = pairOf(data, quality);
  if (pair === undefined) return { absent: "it takes two candidates that are both selectable everywhere" };
  const targets = sharesOf(data, { ...pair, router });
  const refused = targets.flatMap((target, part) => {
    const [reason] = data.refusals(target);
    return reason === undefined ? [] : [`${(100 * part) / PARTS} % of calls to ${pair.strong}: ${reason}`];
  });
  if (refused.length > 0) return { absent: `the log cannot carry it: ${refused[0]}` };
  const estimates = targets.map((target, part) => data.value(`share ${part}/${PARTS}`, target, quality));
  const gap = estimates.at(-1)!.value - estimates[0]!.value;
  if (!(gap > 0))
    return { absent: `${pair.strong} is no better than ${pair.weak}: there is no gap to recover` };
  const { rng, level = 0.95, replicates = 1000 } = data.options;
  const draws = bootstrap(estimates, { rng: rng.split("frontier"), replicates });
  const points = toPoints(estimates.map((each) => each.value));
  const over = (figure: (points: readonly FrontierPoint[]) => number | undefined): Banded => ({
    value: figure(points),
    band: bandOf(
      Array.from({ length: replicates }, (_, r) => {
        const drawn = toPoints(draws.map((each) => each[r]!));
        return drawn.at(-1)!.quality > drawn[0]!.quality ? figure(drawn) : undefined;
      }),
      level,
    ),
  });
  return {
    ...pair,
    points,
    apgr: over(apgr),
    cpt50: over((each) => cpt(each, 0.5)),
    cpt80: over((each) => cpt(each, 0.8)),
    ...(data.measures.includes("cost") ? { hull: hullOf(data, { router, quality }) } : {}),
  };
}

/** The cheapest and the most expensive candidate; without cost the worst and the best. Both are offered everywhere and,
 *  where two are, supported by the log. */
function pairOf(data: EvaluationData, quality: Measure): { weak: string; strong: string } | undefined {
  const open = data.candidates.filter((id) =>
    data.rows.every((row) => row.candidates.some((one) => one.id === id && one.selectable)),
  );
  const by: Measure = data.measures.includes("cost") ? "cost" : quality;
  const supported = open.filter((id) => data.refusals(data.target(always(id))).length === 0);
  const ranked = (supported.length < 2 ? open : supported)
    .map((id) => ({ id, value: data.value(id, data.target(always(id)), by).value }))
    .sort((a, b) => a.value - b.value);
  if (ranked.length < 2) return undefined;
  return { weak: ranked[0]!.id, strong: ranked.at(-1)!.id };
}

const always =
  (id: string): Distribution =>
  (row) =>
    row.candidates.map((one) => (one.id === id ? 1 : 0));

/** One policy per share: it sends that share of the rows, highest scores first, to the strong model. */
function sharesOf(
  data: EvaluationData,
  { weak, strong, router }: { weak: string; strong: string; router: Router },
): Float64Array[] {
  const score = Float64Array.from(data.rows, (row) => {
    const { probabilities } = router.policy!.answer(row.context, row.candidates);
    const of = (id: string) => probabilities[row.candidates.findIndex((one) => one.id === id)]!;
    const both = of(weak) + of(strong);
    return both === 0 ? 0.5 : of(strong) / both;
  });
  const order = byScore(score);
  return Array.from({ length: PARTS + 1 }, (_, part) => {
    const sent = rankedShares(score, part / PARTS, order);
    return data.target((row, i) =>
      row.candidates.map(({ id }) => (id === strong ? sent[i]! : id === weak ? 1 - sent[i]! : 0)),
    );
  });
}

function hullOf(data: EvaluationData, { router, quality }: { router: Router; quality: Measure }): Hull {
  const tried = [...floorsOf(data, router), ...singlesOf(data)].map(({ name, of }) => {
    const target = data.target(of);
    return { name, target, reasons: data.refusals(target) };
  });
  const named = tried.filter(({ reasons }) => reasons.length === 0);
  const refused = tried
    .filter(({ reasons }) => reasons.length > 0)
    .map(({ name, reasons }) => ({ name, reasons }));
  if (named.length === 0) return { points: [], refused };
  const estimates = (measure: Measure) => named.map(({ name, target }) => data.value(name, target, measure));
  const [costs, qualities] = [estimates("cost"), estimates(quality)];
  const { rng, level = 0.95, replicates = 1000 } = data.options;
  const draws = bootstrap([...costs, ...qualities], { rng: rng.split("hull"), replicates });
  const single = named.map(({ name }) => data.candidates.includes(name));
  const areaOf = (costAt: (i: number) => number, qualityAt: (i: number) => number, all: boolean) =>
    hullArea(
      named.flatMap((_, i) =>
        all || single[i] ? [{ cost: costAt(i), quality: qualityAt(i), single: single[i]! }] : [],
      ),
    );
  const banded = (all: boolean): Banded => ({
    value: areaOf(
      (i) => costs[i]!.value,
      (i) => qualities[i]!.value,
      all,
    ),
    band: bandOf(
      Array.from({ length: replicates }, (_, r) =>
        areaOf(
          (i) => draws[i]![r]!,
          (i) => draws[costs.length + i]![r]!,
          all,
        ),
      ),
      level,
    ),
  });
  return {
    points: named.map(({ name }, i) => ({ name, cost: costs[i]!.value, quality: qualities[i]!.value })),
    refused,
    ...(refused.length === 0 ? { area: banded(true) } : {}),
    ...(refused.some(({ name }) => data.candidates.includes(name)) ? {} : { singlesArea: banded(false) }),
  };
}

function floorsOf(data: EvaluationData, router: Router): { name: string; of: Distribution }[] {
  const answers = data.rows.map((row) => router.policy!.answer(row.context, row.candidates));
  const sorted = Float64Array.from(answers, (each) => each.confidence).sort();
  const floors = new Set(FLOORS.map((share) => sorted[Math.floor(share * (sorted.length - 1))]!));
  const at = (floor: number): Distribution => {
    return (row, i) => {
      const policy = { ...router.policy!, answer: () => answers[i]! };
      return distribution(row.context, row.candidates, { ...router, policy, floor }).probabilities;
    };
  };
  const { policy: _, ...table } = router;
  const never: Distribution = (row) => distribution(row.context, row.candidates, table).probabilities;
  return [
    ...[...floors].map((floor) => ({ name: `floor ${floor.toPrecision(3)}`, of: at(floor) })),
    { name: "never the policy", of: never },
  ];
}

function singlesOf(data: EvaluationData): { name: string; of: Distribution }[] {
  return data.candidates
    .filter((id) => data.rows.every((row) => row.candidates.some((one) => one.id === id && one.selectable)))
    .map((id) => ({ name: id, of: always(id) }));
}

/** Mean height of the upper concave hull between the cheapest and the most expensive single candidate. */
export function hullArea(
  points: readonly { readonly cost: number; readonly quality: number; readonly single: boolean }[],
): number | undefined {
  const costs = points.filter((each) => each.single).map((each) => each.cost);
  const [from, to] = [Math.min(...costs), Math.max(...costs)];
  if (!(to > from)) return undefined;
  // Points beyond the most expensive single candidate are ignored.
  const inside = points.filter((each) => each.cost <= to);
  const cheapest = {
    cost: from,
    quality: Math.max(...inside.filter((p) => p.cost <= from).map((p) => p.quality)),
  };
  const best = { cost: to, quality: Math.max(...inside.map((p) => p.quality)) };
  const hull = upperHull([cheapest, ...inside.filter((p) => p.cost > from && p.cost < to), best]);
  let area = 0;
  for (let i = 1; i < hull.length; i++)
    area += ((hull[i]!.quality + hull[i - 1]!.quality) / 2) * (hull[i]!.cost - hull[i - 1]!.cost);
  return area / (to - from);
}

function upperHull(
  points: readonly { cost: number; quality: number }[],
): { cost: number; quality: number }[] {
  const sorted = [...points].sort((a, b) => a.cost - b.cost || a.quality - b.quality);
  const hull: { cost: number; quality: number }[] = [];
  for (const point of sorted) {
    while (hull.length >= 2 && turnsUp(hull.at(-2)!, hull.at(-1)!, point)) hull.pop();
    hull.push(point);
  }
  return hull;
}

function turnsUp(
  a: { cost: number; quality: number },
  b: { cost: number; quality: number },
  c: { cost: number; quality: number },
): boolean {
  return (b.quality - a.quality) * (c.cost - a.cost) <= (c.quality - a.quality) * (b.cost - a.cost);
}

function toPoints(qualities: readonly number[]): FrontierPoint[] {
  return qualities.map((quality, part) => ({ share: part / PARTS, quality }));
}

/** No band where a tenth of the replicates lack the figure. */
function bandOf(replicates: readonly (number | undefined)[], level: number): Banded["band"] {
  const found = Float64Array.from(replicates.filter((each) => each !== undefined));
  if (found.length < 0.9 * replicates.length) return undefined;
  const { low, high } = percentileInterval(found, level);
  return { low, high };
}
