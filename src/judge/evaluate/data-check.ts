/** Faults of a decision log that intervals do not show. Rows: repeated rows, dependent decisions of a session, costs on
 *  some rows only, propensities that do not match the choices. Rewards: constant or drifting rewards, outliers, tails that
 *  leave the mean undefined.
 *  In: labelled rows in logging order. Out: findings, the most serious first. Pure. A finding of severity `refuse` makes
 *  intervals too narrow: the gate refuses the log, and an evaluation certifies nothing. Other findings are warnings. */
import { compareUtf8 } from "../../base/index.ts";
import { armsOf } from "../../learn/index.ts";
import { CERTAIN_LOG, quantile } from "../ope/index.ts";
import { rowsOfReturns } from "./chains.ts";
import {
  type ArmOutcome,
  type JudgedRow,
  type Measure,
  measuresIn,
  mixedCosts,
  observedOutcomes,
} from "./judged-row.ts";
import { sessionDependence } from "./session-check.ts";

export interface DataFinding {
  readonly kind:
    | "size"
    | "duplicates"
    | "sessions"
    | "constant-reward"
    | "propensities"
    | "outliers"
    | "heavy-tail"
    | "drift"
    | "costs"
    | "candidates";
  readonly severity: "refuse" | "warn";
  readonly message: string;
  /** Measure and candidate of a heavy tail. The gate refuses that measure for policies that choose the candidate. */
  readonly measure?: Measure;
  readonly arm?: string;
}

/** Limit of z-scores. Many tests run on every log; a larger |z| occurs by chance in about 1 of 150 000. */
const FAR = 4.5;

/** `discount`: judges whole chains; a reward one decision later is multiplied by it.
 *  The checks of sessions and constant rewards then use returns. */
export function checkData(rows: readonly JudgedRow[], discount?: number): DataFinding[] {
  const judged = discount === undefined ? rows : rowsOfReturns(rows, discount);
  const outcomes = observedOutcomes(rows);
  const byArm = groupByArm(outcomes);
  return [
    ...duplicates(rows),
    ...sessions(rows, judged),
    ...constantReward(discount === undefined ? outcomes : judged),
    ...propensities(rows),
    ...outliers(outcomes),
    ...heavyTails(byArm, measuresIn(rows)),
    ...drift(byArm),
    ...costs(rows),
  ];
}

/** The reasons for which the gate refuses a log. They hold for every policy. */
export function logFaults(findings: readonly DataFinding[]): string[] {
  return findings.flatMap(({ severity, message }) => (severity === "refuse" ? [`the log: ${message}`] : []));
}

function groupByArm(outcomes: readonly ArmOutcome[]): [arm: string, of: ArmOutcome[]][] {
  const groups = new Map<string, ArmOutcome[]>();
  for (const outcome of outcomes) {
    const group = groups.get(outcome.arm);
    if (group === undefined) groups.set(outcome.arm, [outcome]);
    else group.push(outcome);
  }
  return [...groups].sort(([a], [b]) => compareUtf8(a, b));
}

/** Finds copies of rows under new ids. Two signs, both impossible by chance:
 *  - the whole log repeats itself, block after block or row after row;
 *  - rows with the same context agree in their choice more often than their propensities allow. */
function duplicates(rows: readonly JudgedRow[]): DataFinding[] {
  // Copies have their keys in the same order, so no canonical form is needed.
  const contexts = rows.map((row) =>
    JSON.stringify([
      row.context.prompt,
      row.context.fields,
      row.candidates.map(({ id, features }) => [id, features]),
    ]),
  );
  const contents = rows.map((row, i) => `${contexts[i]} ${row.chosen} ${row.propensity} ${row.reward}`);
  const times = repeats(rows, contents);
  if (times !== undefined)
    return [
      found(
        "duplicates",
        "refuse",
        `every row occurs ${times} times under different ids: intervals would be too narrow. Remove the copies, or give them one task id.`,
      ),
    ];
  const { pairs, agree, z } = agreement(rows, { contexts, contents });
  if (agree < LEAST_COPIES || z <= FAR) return [];
  return [
    found(
      "duplicates",
      "refuse",
      `${agree} of ${pairs} rows repeat the context, choice and reward of an earlier row of another unit, more than chance allows (z = ${z.toFixed(1)}). Remove the copies, or give them one task id.`,
    ),
  ];
}

const MOST_COPIES = 10;
/** Fewer repetitions can occur by chance in a short log. */
const LEAST_COPIES = 10;

/** k, if the log is one block repeated k times, or each row k times in a row, under different units. */
function repeats(rows: readonly JudgedRow[], contents: readonly string[]): number | undefined {
  const n = rows.length;
  const kinds = new Set(contents).size;
  // A log with only a few kinds of rows repeats itself by chance.
  if (kinds < LEAST_COPIES) return undefined;
  for (let k = 2; k <= MOST_COPIES; k++) {
    if (n % k !== 0 || n / k < LEAST_COPIES) continue;
    const apart = (lag: number) => rows.some((row, i) => i + lag < n && row.unit !== rows[i + lag]!.unit);
    if (apart(n / k) && contents.every((each, i) => each === contents[i % (n / k)])) return k;
    if (apart(1) && contents.every((each, i) => each === contents[i - (i % k)])) return k;
  }
  return undefined;
}

/** Counts the rows that follow a row of the same context, and the copies among them. z compares the copies with the
 *  number that the propensities predict. */
function agreement(
  rows: readonly JudgedRow[],
  { contexts, contents }: { contexts: readonly string[]; contents: readonly string[] },
): { pairs: number; agree: number; z: number } {
  const before = new Map<string, number>();
  let [pairs, agree, expected, variance] = [0, 0, 0, 0];
  for (const [i, row] of rows.entries()) {
    const last = before.get(contexts[i]!);
    before.set(contexts[i]!, i);
    const p = row.propensity;
    if (last === undefined || p === null || rows[last]!.unit === row.unit) continue;
    pairs++;
    if (contents[i] === contents[last]) agree++;
    // The probability of repeating the last row's choice is at most the last row's propensity.
    const same = rows[last]!.propensity ?? 1;
    expected += same;
    variance += same * (1 - same);
  }
  return { pairs, agree, z: variance === 0 ? 0 : (agree - expected) / Math.sqrt(variance) };
}

/** Dependence between decisions or chains of one session that count as separate units. */
function sessions(rows: readonly JudgedRow[], outcomes: readonly JudgedRow[]): DataFinding[] {
  const dependence = sessionDependence(rows, { outcomes, far: FAR });
  if (dependence === undefined) return [];
  const { kind, pairs, z } = dependence;
  const counted = kind === "rewards" && outcomes.length < rows.length ? "rollouts" : "decisions";
  const what =
    kind === "choices"
      ? "decisions repeat the choice before them in their session more often than their probabilities allow"
      : "rewards of one session go together";
  return [
    found(
      "sessions",
      "refuse",
      `${what} (${pairs} ${counted} that follow another, z = ${z.toFixed(1)}): they are not independent, and intervals would be too narrow. Group them: train with --unit session, or give a session one task id.`,
    ),
  ];
}

function constantReward(rows: readonly { readonly reward: number }[]): DataFinding[] {
  const [first] = rows;
  if (first === undefined || rows.some(({ reward }) => reward !== first.reward)) return [];
  return [
    found(
      "constant-reward",
      "warn",
      `the reward is always ${first.reward} (${rows.length} times): the log cannot tell policies apart. Check where rewards come from.`,
    ),
  ];
}

function propensities(rows: readonly JudgedRow[]): DataFinding[] {
  if (rows.some(({ propensity }) => propensity === null)) return [];
  const hasChoice = rows.some(
    ({ candidates }) => candidates.filter(({ selectable }) => selectable).length > 1,
  );
  if (hasChoice && rows.every(({ propensity }) => propensity === 1))
    return [found("propensities", "warn", `${CERTAIN_LOG}.`)];
  return armsOf(rows).flatMap((arm) => {
    const offers = rows.flatMap((row): Offer[] => {
      const place = row.candidates.findIndex(({ id }) => id === arm);
      if (row.candidates[place]?.selectable !== true) return [];
      const isChosen = row.chosen === place;
      return [{ isChosen, probability: isChosen ? row.propensity! : row.behaviour?.[place] }];
    });
    const { ratio, z } = choicesPerProbability(offers);
    // With few choices of a candidate the test has no power.
    if (Math.abs(z) <= FAR || offers.filter(({ isChosen }) => isChosen).length < LEAST_COPIES) return [];
    return [
      found(
        "propensities",
        "warn",
        `${arm} was chosen ${ratio.toFixed(2)} times as often as its logged probabilities say (z = ${z.toFixed(1)}). Log the probability of the final choice, after floors and fallbacks.`,
      ),
    ];
  });
}

/** A row that offers a candidate. */
interface Offer {
  readonly isChosen: boolean;
  /** Logged probability of the candidate; undefined if only that of another choice was logged. */
  readonly probability: number | undefined;
}

/** The number of choices, relative to the number that the logged probabilities predict, and its distance from 1. If only
 *  probabilities of choices were logged, the mean of 1{chosen}/p predicts 1; its error is estimated from the rows. */
function choicesPerProbability(offers: readonly Offer[]): { ratio: number; z: number } {
  const known = offers.flatMap(({ probability }) => (probability === undefined ? [] : [probability]));
  if (known.length === offers.length) {
    const chosen = offers.filter(({ isChosen }) => isChosen).length;
    const expected = known.reduce((sum, p) => sum + p, 0);
    const variance = known.reduce((sum, p) => sum + p * (1 - p), 0);
    return { ratio: chosen / expected, z: variance > 0 ? (chosen - expected) / Math.sqrt(variance) : 0 };
  }
  const { mean, error } = meanOf(
    offers.map(({ isChosen, probability }) => (isChosen ? 1 / probability! : 0)),
  );
  return { ratio: mean, z: error > 0 ? (mean - 1) / error : 0 };
}

/** An outlier's distance from the median exceeds this many times the 99th percentile of distances. */
const OUTLYING = 20;
const SHOWN = 5;

function outliers(rows: readonly ArmOutcome[]): DataFinding[] {
  const far = outlyingRows(rows);
  if (far.length === 0) return [];
  const shown = far.slice(0, SHOWN).map(({ id, reward }) => `${id} (${reward})`);
  return [
    found(
      "outliers",
      "warn",
      `${far.length} of ${rows.length} rewards lie far from all others: ${shown.join(", ")}${far.length > SHOWN ? ", …" : ""}. Correct them, or state the range of rewards.`,
    ),
  ];
}

/** Rows whose reward is farther from the median than 20 times the 99th percentile of these distances. */
export function outlyingRows<Row extends { readonly id: string; readonly reward: number }>(
  rows: readonly Row[],
): Row[] {
  if (rows.length === 0) return [];
  const median = quantile(Float64Array.from(rows, (row) => row.reward).sort(), 0.5);
  const distances = Float64Array.from(rows, (row) => Math.abs(row.reward - median)).sort();
  // No interpolation: it would mix in the outliers.
  const usual =
    distances[Math.ceil(0.99 * distances.length) - 1]! || (distances.find((each) => each > 0) ?? 0);
  return usual === 0 ? [] : rows.filter((row) => Math.abs(row.reward - median) > OUTLYING * usual);
}

/** A mean depends on unseen values if two signs hold. One of n values is more than 2/√n of the total. Fewer than ∛n
 *  values, at most 12, carry the variance. The error of such a mean is itself a guess. With the usual long tails of
 *  costs (lognormal up to σ = 1.3) both signs vanish as n grows. Without a finite variance they remain. Equal largest
 *  values are not a tail: rewards of 0 and 1 have them. */
const LEAST_ROWS = 100;
const MOST_CARRIERS = 12;

function heavyTails(byArm: ReturnType<typeof groupByArm>, measured: readonly Measure[]): DataFinding[] {
  return measured.flatMap((measure) =>
    byArm.flatMap(([arm, outcomes]) => {
      const sizes = outcomes
        .map(({ measures }) => Math.abs(measures[measure] ?? 0))
        .filter((size) => size > 0)
        .sort((a, b) => b - a);
      if (sizes.length < LEAST_ROWS || sizes[0] === sizes[1]) return [];
      const total = sizes.reduce((sum, each) => sum + each, 0);
      const share = sizes[0]! / total;
      const carriers = carriersOf(sizes, total / sizes.length);
      const few = Math.min(MOST_CARRIERS, Math.cbrt(sizes.length));
      if (share < 2 / Math.sqrt(sizes.length) || carriers >= few) return [];
      return [
        {
          ...found(
            "heavy-tail",
            "warn",
            `one of ${sizes.length} decisions for ${arm} holds ${(100 * share).toFixed(0)} % of all its ${measure}, and few carry its spread: a mean rests on values that the log may not have shown yet. Cap the ${measure} at what you would let one decision take, or collect more rows.`,
          ),
          ...{ measure, arm },
        },
      ];
    }),
  );
}

/** The number of equally large values that would have the same ratio of squared variance to fourth moment. */
function carriersOf(values: readonly number[], mean: number): number {
  let [squares, fourths] = [0, 0];
  for (const value of values) {
    const square = (value - mean) ** 2;
    squares += square;
    fourths += square ** 2;
  }
  return squares ** 2 / fourths;
}

/** Compares rewards of the first and the second half, candidate by candidate, so that changed choices are not drift. */
function drift(byArm: ReturnType<typeof groupByArm>): DataFinding[] {
  return byArm.flatMap(([arm, outcomes]) => {
    const rewards = outcomes.map(({ reward }) => reward);
    const half = rewards.length >> 1;
    if (half < LEAST_COPIES) return [];
    const [early, late] = [meanOf(rewards.slice(0, half)), meanOf(rewards.slice(half))];
    const error = Math.sqrt(early.error ** 2 + late.error ** 2);
    const z = error > 0 ? (late.mean - early.mean) / error : 0;
    if (Math.abs(z) <= FAR) return [];
    return [
      found(
        "drift",
        "warn",
        `the mean reward of ${arm} moves from ${early.mean.toPrecision(3)} in the first half of its rows to ${late.mean.toPrecision(3)} in the second (z = ${z.toFixed(1)}): the average over the log says little about future rewards. Judge by recent rows (--since).`,
      ),
    ];
  });
}

/** The next step if decisions lack a cost. */
export const COSTS_LATER =
  "To have costs in later rollouts, set price: of every model in the gateway's file. For an imported log, map cost=… or costs=… at `data import`.";

/** Cost is judged only if every row has a cost. */
function costs(rows: readonly JudgedRow[]): DataFinding[] {
  const lacking = rows.filter(({ measures }) => measures.cost === null);
  if (lacking.length === 0 || lacking.length === rows.length) return [];
  const mixed = mixedCosts(rows);
  if (mixed !== undefined)
    return [found("costs", "warn", `${mixed.kinds}, so cost is not judged. ${mixed.remedy}`)];
  return [
    found(
      "costs",
      "warn",
      `no cost is known of ${lacking.length} of ${rows.length} decisions, first ${lacking[0]!.id}: cost is not judged. ${COSTS_LATER} Or judge a file without these decisions (--data).`,
    ),
  ];
}

function meanOf(values: readonly number[]): { mean: number; error: number } {
  const n = values.length;
  const mean = values.reduce((sum, each) => sum + each, 0) / n;
  const squares = values.reduce((sum, each) => sum + (each - mean) ** 2, 0);
  return { mean, error: n < 2 ? 0 : Math.sqrt(squares / (n * (n - 1))) };
}

function found(kind: DataFinding["kind"], severity: DataFinding["severity"], message: string): DataFinding {
  return { kind, severity, message };
}
