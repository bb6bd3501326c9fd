/** A decision as input of the judge: the logged choice, its unit, and its outcome split into measures.
 *  Reward is the whole outcome; quality is the reward without its cost and latency terms. */
import { given, plural, RollbookError } from "../../base/index.ts";
import {
  areBilled,
  burdenOf,
  type DecisionRow,
  hasOwnCost,
  type LoggedRow,
  qualityIn,
  type RewardTerms,
  type SplitUnit,
  spentOf,
  unitOf,
} from "../../learn/index.ts";

const MEASURES = ["reward", "quality", "cost", "latency"] as const;
export type Measure = (typeof MEASURES)[number];
/** More cost and more latency are worse; more reward and quality are better. */
export const isBurden = (measure: Measure): boolean => measure === "cost" || measure === "latency";
/** The flag that states the range of a judged measure: `--quality-range` or `--cost-range`. */
export const rangeKind = (measure: Measure): "quality" | "cost" => (isBurden(measure) ? "cost" : "quality");

type Measures = Readonly<Record<Measure, number | null>>;

export interface JudgedRow extends DecisionRow {
  readonly reward: number;
  /** Start of the rollout, or the time in the dataset. */
  readonly atMs?: number;
  /** Rows of one unit are split, resampled and counted together. */
  readonly unit: string;
  /** Absent if sessions are unknown. */
  readonly session?: string;
  /** The rollout of the decision; absent: a single decision. */
  readonly chain?: string;
  /** The logged distribution, one entry per candidate. Absent if only the choice's probability was logged. */
  readonly behaviour?: readonly number[];
  readonly measures: Measures;
  /** One price per candidate, if the cost is a price that is known beforehand. */
  readonly prices?: readonly number[];
  /** US dollars that are not a measure, because other rows have a cost without a stated unit. */
  readonly unusedUsd?: number;
  /** The outcome of every candidate: known in simulators and benchmarks, never in production. */
  readonly known?: readonly Measures[];
}

export interface JudgedRows {
  readonly rows: readonly JudgedRow[];
  readonly unlabelled: number;
  /** True if every row has a cost in US dollars, and the gateway recorded at least one of them. */
  readonly callCosts: boolean;
  /** True if every row has a cost in US dollars, and at least one is the declared price of the choice. */
  readonly declaredPrices: boolean;
}

/** Unlabelled rows are left out and counted, never taken as 0. */
export function toJudgedRows(rows: readonly LoggedRow[], unit: SplitUnit): JudgedRows {
  const labelled = rows.filter(({ reward }) => reward !== null);
  // A row without a bill or price has no cost. The other rows keep their cost, so an error can name the rows that lack
  // one.
  const bills = areBilled(labelled);
  const judged = labelled.map((row) => toJudged(row, row.reward!, { unit, bills }));
  const inDollars = bills && judged.every(({ measures }) => measures.cost !== null);
  return {
    rows: judged,
    unlabelled: rows.length - judged.length,
    callCosts: inDollars && labelled.some(({ costUsd }) => costUsd !== undefined),
    declaredPrices: inDollars && labelled.some(({ costUsd }) => costUsd === undefined),
  };
}

function toJudged(
  row: LoggedRow,
  reward: number,
  { unit, bills }: { unit: SplitUnit; bills: boolean },
): JudgedRow {
  const { candidates, terms } = row;
  const prices = candidates.map(({ features }) => (bills ? features.callPrice : features.price));
  const isSpent = bills && row.costUsd !== undefined;
  const priced = terms.cost === undefined && !isSpent && prices.every((price) => price !== undefined);
  const cost = bills ? spentOf(row) : priced ? prices[row.chosen] : undefined;
  const unusedUsd = bills || hasOwnCost(row) ? undefined : spentOf(row);
  const logged = candidates.every((one) => one.probability !== null || !one.selectable);
  const known = candidates.flatMap((one, c): Measures[] =>
    one.outcome === undefined
      ? []
      : [
          measuresOf(one.outcome.reward, {
            terms: one.outcome.terms,
            price: priced ? prices[c] : undefined,
          }),
        ],
  );
  return {
    id: row.id,
    atMs: row.atMs,
    context: row.context,
    candidates,
    chosen: row.chosen,
    propensity: row.propensity,
    reward,
    unit: unitOf(row, unit),
    session: row.session,
    chain: row.chain,
    measures: measuresOf(reward, { terms, price: cost }),
    ...(logged ? { behaviour: candidates.map((one) => one.probability ?? 0) } : {}),
    ...(priced ? { prices: prices as number[] } : {}),
    ...(known.length === candidates.length ? { known } : {}),
    ...given({ unusedUsd }),
  };
}

/** The measures of one outcome. Without a logged cost, the call's bill or the candidate's price is used. */
export function measuresOf(
  reward: number,
  { terms, price }: { terms: RewardTerms; price?: number | undefined },
): Measures {
  const burden = (term: RewardTerms[string] | undefined) => (term === undefined ? null : burdenOf(term));
  return {
    reward,
    quality: qualityIn(reward, terms),
    cost: burden(terms.cost) ?? price ?? null,
    latency: burden(terms.latency),
  };
}

type CostOfRow = Pick<JudgedRow, "id" | "atMs" | "measures" | "unusedUsd">;

interface MixedCosts {
  /** Which rows have which kind of cost; without a full stop. */
  readonly kinds: string;
  /** The options that select one kind. */
  readonly remedy: string;
}

/** Undefined if no row has unused dollars. */
export function mixedCosts(rows: readonly CostOfRow[]): MixedCosts | undefined {
  const dollars = rows.filter(({ unusedUsd }) => unusedUsd !== undefined);
  const scored = rows.filter(({ measures }) => measures.cost !== null);
  if (dollars.length === 0) return undefined;
  const none = rows.length - dollars.length - scored.length;
  const having = (of: readonly CostOfRow[]) =>
    `${plural(of.length, "decision")}${of[0] === undefined ? "" : ` (first ${of[0].id})`} ${of.length === 1 ? "has" : "have"}`;
  const counts = [
    `(1) ${having(scored)} a scored cost without a unit: the reward term "cost", as the agent of a loop may give it, or the candidate feature "price"`,
    `(2) ${having(dollars)} no scored cost, only US dollars: those that a gateway recorded, or "callPrice" of its file`,
    ...(none === 0 ? [] : [`${plural(none, "decision")} without a cost`]),
  ];
  return {
    kinds: `the log holds costs of two kinds: ${counts.join("; ")}. The two cannot be compared`,
    remedy: remedyOf(scored, dollars),
  };
}

/** A loop and the calls after it are apart in time. */
function remedyOf(scored: readonly CostOfRow[], dollars: readonly CostOfRow[]): string {
  const cut = cutBetween(scored, dollars) ?? cutBetween(dollars, scored);
  if (cut === undefined)
    return "Judge one kind at a time: --exp NAME selects the rollouts of one experiment, such as a window of a loop.";
  const [first, second] = cut.earlier === scored ? ["(1)", "(2)"] : ["(2)", "(1)"];
  return `Judge one kind at a time: --until ${cut.at} selects ${first}, --since ${cut.at} selects ${second}.`;
}

/** The time of the first decision of `later`, if every decision of `earlier` is before it. */
function cutBetween(earlier: readonly CostOfRow[], later: readonly CostOfRow[]) {
  const timesOf = (of: readonly CostOfRow[]) => of.map(({ atMs = Number.NaN }) => atMs);
  const end = timesOf(earlier).reduce((last, each) => Math.max(last, each), Number.NEGATIVE_INFINITY);
  const start = timesOf(later).reduce((first, each) => Math.min(first, each), Number.POSITIVE_INFINITY);
  const isApart = Number.isFinite(end) && Number.isFinite(start) && end < start;
  return isApart ? { earlier, at: new Date(start).toISOString() } : undefined;
}

/** Rows with only one measure, the total: the logged reward, or quality minus a weight times cost. */
export function totalRewardRows(
  rows: readonly JudgedRow[],
  { costWeight }: { readonly costWeight?: number | undefined },
): JudgedRow[] {
  const mixed = mixedCosts(rows);
  const totalOf = ({ reward, quality, cost }: Measures, id: string): Measures => {
    if (costWeight !== undefined && cost === null)
      throw new RollbookError(
        "no-cost",
        { id },
        mixed !== undefined
          ? `${mixed.kinds}. ${mixed.remedy} Or judge the logged reward without --cost-weight.`
          : `decision ${id} has no cost: neither a reward term called cost, nor features.price of every candidate, nor a recorded cost of its call, nor callPrice of the choice. Record one, or judge the logged reward without --cost-weight.`,
      );
    const total = costWeight === undefined ? reward! : quality! - costWeight * cost!;
    return { reward: total, quality: total, cost: null, latency: null };
  };
  return rows.map(({ prices: _, known, ...row }) => {
    const measures = totalOf(row.measures, row.id);
    const all = known === undefined ? {} : { known: known.map((each) => totalOf(each, row.id)) };
    return { ...row, ...all, measures, reward: measures.reward! };
  });
}

/** An observed outcome of a candidate. */
export interface ArmOutcome {
  /** Id of the decision. */
  readonly id: string;
  readonly arm: string;
  readonly reward: number;
  readonly measures: Measures;
}

/** Every outcome that was observed. If all are known, those of each selectable candidate: the logged choice may be there
 *  only to fill its field. Else those of the logged choices. */
export function observedOutcomes(rows: readonly JudgedRow[]): ArmOutcome[] {
  const isKnown = rows.every(({ known }) => known !== undefined);
  return rows.flatMap(({ id, candidates, chosen, reward, measures, known }) => {
    if (!isKnown) return [{ id, arm: candidates[chosen]!.id, reward, measures }];
    return candidates.flatMap((one, c) =>
      one.selectable ? [{ id, arm: one.id, reward: known![c]!.reward!, measures: known![c]! }] : [],
    );
  });
}

/** The measures that every row has. A cost on some rows only is not a measure. */
export function measuresIn(rows: readonly JudgedRow[]): Measure[] {
  return MEASURES.filter(
    (measure) =>
      rows.every((row) => row.measures[measure] !== null) &&
      (measure !== "quality" ||
        observedOutcomes(rows).some(({ measures: { quality, reward } }) => quality !== reward)),
  );
}

/** Quality if it differs from the reward, else the reward. */
export function qualityOf(measures: readonly Measure[]): Measure {
  return measures.includes("quality") ? "quality" : "reward";
}

export function requireRows(rows: readonly JudgedRow[]): readonly JudgedRow[] {
  if (rows.length > 0) return rows;
  throw new RollbookError(
    "empty-split",
    { rows: 0 },
    "no labelled row is left to judge by. Log more outcomes, or widen the judge split.",
  );
}
