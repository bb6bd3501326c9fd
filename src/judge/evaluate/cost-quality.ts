/** The quality of a router at each cost, with bands.
 *  Two views of one policy. By share of calls to the more expensive of two models: RouteLLM's APGR and CPT. By money:
 *  the upper hull of the points that floors and single candidates reach, RouterBench's area.
 *  In: evaluation data, a router. Out: points, figures and bands. Bands of APGR and CPT are percentiles over replicates
 *  of whole units. Areas are maxima, so they get cross-fitted bounds (see hull.ts). A point that the log does not
 *  support gets a reason instead of a number. */
import { distribution, type Router } from "../../policy/index.ts";
import { bootstrap, percentileInterval } from "../ope/index.ts";
import type { Distribution, EvaluationData } from "./evaluation-data.ts";
import { apgr, byScore, cpt, type FrontierPoint, rankedShares } from "./frontier.ts";
import { type Banded, hullAreas } from "./hull.ts";
import type { Measure } from "./judged-row.ts";

export interface CostQuality {
  readonly weak: string;
  readonly strong: string;
  readonly points: readonly FrontierPoint[];
  readonly apgr: Banded;
  readonly cpt50: Banded;
  readonly cpt80: Banded;
  /** Present if cost is known. */
  readonly hull?: Hull;
}

interface Hull {
  /** One point per floor, from "always the policy" to "never the policy", and one per single candidate. */
  readonly points: readonly { readonly name: string; readonly cost: number; readonly quality: number }[];
  /** Points that the log does not support, with the reasons. */
  readonly refused: readonly RefusedPoint[];
  /** Mean quality over the cost range of the single candidates, along the hull of all points.
   *  Absent if a point is refused. */
  readonly area?: Banded;
  /** The same area for the single candidates alone: the quality of mixing them at random. Absent if one is refused. */
  readonly singlesArea?: Banded;
  /** `area` minus `singlesArea`: the policy's gain over mixing the candidates at random. */
  readonly gain?: Banded;
}

interface RefusedPoint {
  readonly name: string;
  readonly reasons: readonly string[];
}

const PARTS = 10;
/** Prices that differ by less are equal. */
const ROUNDING = 1e-9;
/** Quantiles of the policy's confidence that serve as floors. */
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
  const estimates = targets.map((target) => data.value(target, quality));
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

/** The cheapest and the most expensive candidate. Among equal prices it takes the candidate of best quality. Without
 *  cost: the worst and the best candidate. Both are selectable in every row. If two candidates have support in the log,
 *  both have support. */
function pairOf(data: EvaluationData, quality: Measure): { weak: string; strong: string } | undefined {
  const open = data.candidates.filter((id) =>
    data.rows.every((row) => row.candidates.some((one) => one.id === id && one.selectable)),
  );
  const by: Measure = data.measures.includes("cost") ? "cost" : quality;
  const supported = open.filter((id) => data.refusals(data.target(always(id))).length === 0);
  const valued = (supported.length < 2 ? open : supported).map((id) => {
    const target = data.target(always(id));
    return { id, by: data.value(target, by).value, quality: data.value(target, quality).value };
  });
  if (valued.length < 2) return undefined;
  const ends = [Math.min(...valued.map((each) => each.by)), Math.max(...valued.map((each) => each.by))];
  const tied = (a: number, b: number) => Math.abs(a - b) <= ROUNDING * Math.max(Math.abs(a), Math.abs(b));
  const byQuality = [...valued].sort((a, b) => a.quality - b.quality);
  // If all prices are equal, only quality can be traded.
  if (tied(ends[0]!, ends[1]!)) return { weak: byQuality[0]!.id, strong: byQuality.at(-1)!.id };
  const [weak, strong] = ends.map((end) => byQuality.filter((each) => tied(each.by, end)).at(-1)!.id);
  return { weak: weak!, strong: strong! };
}

const always =
  (id: string): Distribution =>
  (row) =>
    row.candidates.map((one) => (one.id === id ? 1 : 0));

/** One policy per share. It sends that share of the rows, highest scores first, to the strong model. */
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
  const estimates = (measure: Measure) => named.map(({ target }) => data.value(target, measure));
  const points = {
    costs: estimates("cost"),
    qualities: estimates(quality),
    singles: named.map(({ name }) => data.candidates.includes(name)),
  };
  const { rng, level = 0.95 } = data.options;
  const areas = hullAreas(points, { rng: rng.split("hull"), level });
  const singlesRefused = refused.some(({ name }) => data.candidates.includes(name));
  return {
    points: named.map(({ name }, i) => ({
      name,
      cost: points.costs[i]!.value,
      quality: points.qualities[i]!.value,
    })),
    refused,
    ...(areas === undefined || singlesRefused ? {} : { singlesArea: areas.singles }),
    ...(areas === undefined || refused.length > 0 ? {} : { area: areas.all, gain: areas.gain }),
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

function toPoints(qualities: readonly number[]): FrontierPoint[] {
  return qualities.map((quality, part) => ({ share: part / PARTS, quality }));
}

/** No band if more than a tenth of the replicates lack the figure. */
function bandOf(replicates: readonly (number | undefined)[], level: number): Banded["band"] {
  const found = Float64Array.from(replicates.filter((each) => each !== undefined));
  if (found.length < 0.9 * replicates.length) return undefined;
  const { low, high } = percentileInterval(found, level);
  return { low, high };
}
