/** Logged decisions as columns, one entry per row: the input of every estimator.
 *  In: typed arrays. Out: the same arrays, checked. Takes probabilities, not models; reads no file or store. */
import { RollbookError } from "../../../base/index.ts";

export interface LoggedDecisions {
  readonly reward: Float64Array;
  /** π_b(a|x): the logged probability of the chosen action. NaN if it was not logged. */
  readonly behaviour: Float64Array;
  /** π_e(a|x): the probability that the judged policy gives the chosen action. */
  readonly target: Float64Array;
  /** Range of a reward (for chains: of an episode's return), stated before the data. Absent: the observed range. */
  readonly rewardRange?: OutcomeRange;
  /** All candidates of a row. Required by the direct method, doubly robust estimates and the support check. */
  readonly candidates?: Candidates;
  readonly context?: Context;
  /** Rows with the same number are resampled together. Absent: every row is its own unit. */
  readonly episode?: Int32Array;
  /** For chains of decisions; needs `episode`. */
  readonly chain?: Chain;
}

export interface OutcomeRange {
  readonly low: number;
  readonly high: number;
}

export interface Candidates {
  /** K. A candidate that a row does not offer has probability 0 in that row. */
  readonly count: number;
  readonly chosen: Int32Array;
  /** Row-major, rows × K. */
  readonly target: Float64Array;
  readonly behaviour?: Float64Array;
}

export interface Context {
  readonly width: number;
  /** Row-major, rows × width. */
  readonly values: Float64Array;
}

export interface Chain {
  /** 0, 1, 2, … within each episode; rows may be in any order. */
  readonly step: Int32Array;
  readonly discount: number;
  /** The independent unit of each row. Episodes with the same number are resampled together. Absent: the episode. */
  readonly unit?: Int32Array;
}

/** Maps rows to resampling units (the unit of a chain, an episode, or the row itself), numbered by first appearance. */
export interface Units {
  readonly count: number;
  readonly of: Int32Array;
  /** Rows per unit; undefined if every unit is one row. */
  readonly rows: Float64Array | undefined;
}

const SUM_TOLERANCE = 1e-6;
const MATCH_TOLERANCE = 1e-9;

/** Throws at the first unusable row. Rows are counted from 0. */
export function checkDecisions(log: LoggedDecisions): void {
  checkLengths(log);
  const range = log.chain === undefined ? log.rewardRange : undefined;
  for (let row = 0; row < log.reward.length; row++) {
    if (!Number.isFinite(log.reward[row]!)) {
      throw fault("bad-reward", row, log.reward[row]!, "reward", "is not a finite number", DROP_UNLABELLED);
    }
    if (range !== undefined && !isWithin(log.reward[row]!, range))
      throw rangeBroken(row, log.reward[row]!, "reward", range);
    checkPropensity(log.behaviour[row]!, row);
    if (!isProbability(log.target[row]!)) {
      const remedy = "Give the target policy's probability of the chosen action";
      throw fault("bad-target", row, log.target[row]!, "target probability", "is not in [0, 1]", remedy);
    }
  }
  if (log.candidates !== undefined) checkCandidates(log, log.candidates);
  if (log.context !== undefined) checkContext(log.context);
  if (log.chain !== undefined) checkChain(log, log.chain);
}

/** Checks everything but the propensities, for logs without propensities. */
export function checkWithoutPropensities(log: LoggedDecisions): void {
  checkDecisions({
    ...log,
    behaviour: new Float64Array(log.reward.length).fill(1),
    ...withoutBehaviour(log),
  });
}

/** w = π_e / π_b per row. */
export function weightsOf(log: LoggedDecisions): Float64Array {
  const weights = new Float64Array(log.reward.length);
  for (let i = 0; i < weights.length; i++) weights[i] = log.target[i]! / log.behaviour[i]!;
  return weights;
}

export function unitsOf(log: LoggedDecisions): Units {
  const column = log.chain?.unit ?? log.episode;
  if (column !== undefined) return unitsBy(column);
  const rows = log.reward.length;
  return { count: rows, of: Int32Array.from({ length: rows }, (_, i) => i), rows: undefined };
}

/** Entries with the same number are one unit. */
export function unitsBy(column: Int32Array): Units {
  const rows = column.length;
  const of = new Int32Array(rows);
  const numbers = new Map<number, number>();
  for (let i = 0; i < rows; i++) {
    let unit = numbers.get(column[i]!);
    if (unit === undefined) {
      unit = numbers.size;
      numbers.set(column[i]!, unit);
    }
    of[i] = unit;
  }
  const sizes = new Float64Array(numbers.size);
  for (let i = 0; i < rows; i++) sizes[of[i]!] = sizes[of[i]!]! + 1;
  return { count: numbers.size, of, rows: numbers.size === rows ? undefined : sizes };
}

/** First row of each unit if rows are laid out unit by unit; the last entry is the number of rows. */
export function startsOf(units: Pick<Units, "count" | "of">): Int32Array {
  const start = new Int32Array(units.count + 1);
  for (const unit of units.of) start[unit + 1] = start[unit + 1]! + 1;
  for (let e = 0; e < units.count; e++) start[e + 1] = start[e + 1]! + start[e]!;
  return start;
}

export function requireCandidates(log: LoggedDecisions, who: string): Candidates {
  if (log.candidates !== undefined) return log.candidates;
  throw new RollbookError(
    "no-candidates",
    { estimator: who },
    `${who} needs the target's probability of every candidate, and the log has only that of the chosen one. Add \`candidates\`.`,
  );
}

const DROP_UNLABELLED = "A missing outcome is unlabelled, never 0: leave the row out";

function checkLengths(log: LoggedDecisions): void {
  const rows = log.reward.length;
  if (rows === 0)
    throw new RollbookError("empty-log", {}, "the log holds no decision. Log some, or widen the split.");
  const k = log.candidates?.count ?? 0;
  const columns: [string, number | undefined, number][] = [
    ["behaviour", log.behaviour.length, rows],
    ["target", log.target.length, rows],
    ["candidates.chosen", log.candidates?.chosen.length, rows],
    ["candidates.target", log.candidates?.target.length, rows * k],
    ["candidates.behaviour", log.candidates?.behaviour?.length, rows * k],
    ["context.values", log.context?.values.length, rows * (log.context?.width ?? 0)],
    ["episode", log.episode?.length, rows],
    ["chain.step", log.chain?.step.length, rows],
    ["chain.unit", log.chain?.unit?.length, rows],
  ];
  for (const [column, length, expected] of columns) {
    if (length === undefined || length === expected) continue;
    throw new RollbookError(
      "column-length",
      { column, length, expected },
      `column ${column} holds ${length} values, ${rows} rows need ${expected}. Build the columns from the same rows.`,
    );
  }
}

function checkPropensity(p: number, row: number): void {
  if (Number.isNaN(p)) {
    const remedy = "Log propensities, or estimate them and accept a result that is not certified";
    throw fault("missing-propensity", row, p, "propensity", "was not logged", remedy);
  }
  if (p <= 0) {
    const remedy = "A chosen action had a positive chance: repair the log or leave the row out";
    throw fault("zero-propensity", row, p, "propensity", "is not above 0", remedy);
  }
  if (!(p <= 1)) {
    const remedy = "Log probabilities, not densities, scores or log-probabilities";
    throw fault("bad-propensity", row, p, "propensity", "is above 1", remedy);
  }
}

function checkCandidates(log: LoggedDecisions, candidates: Candidates): void {
  for (let row = 0; row < log.reward.length; row++) {
    const action = candidates.chosen[row]!;
    if (action < 0 || action >= candidates.count) {
      const remedy = `Candidates are numbered 0 … ${candidates.count - 1}: map unseen ones first`;
      throw fault("unseen-candidate", row, action, "chosen candidate", "is not among the candidates", remedy);
    }
    checkDistribution(candidates.target, row, candidates, log.target[row]!, "target");
    if (candidates.behaviour !== undefined)
      checkDistribution(candidates.behaviour, row, candidates, log.behaviour[row]!, "behaviour");
  }
}

function checkDistribution(
  matrix: Float64Array,
  row: number,
  candidates: Candidates,
  ofChosen: number,
  name: string,
): void {
  let sum = 0;
  for (let k = 0; k < candidates.count; k++) {
    const p = matrix[row * candidates.count + k]!;
    if (!isProbability(p))
      throw fault(
        "bad-distribution",
        row,
        p,
        `${name} probability of candidate ${k}`,
        "is not in [0, 1]",
        REDO,
      );
    sum += p;
  }
  if (Math.abs(sum - 1) > SUM_TOLERANCE)
    throw fault("bad-distribution", row, sum, `${name} distribution's sum`, "is not 1", REDO);
  const listed = matrix[row * candidates.count + candidates.chosen[row]!]!;
  if (Math.abs(listed - ofChosen) > MATCH_TOLERANCE) {
    throw fault(
      "bad-distribution",
      row,
      listed,
      `${name} probability of the chosen candidate`,
      `differs from the column's ${ofChosen}`,
      REDO,
    );
  }
}

const REDO = "Compute the distribution again from the policy";

function checkContext(context: Context): void {
  for (let i = 0; i < context.values.length; i++) {
    if (Number.isFinite(context.values[i]!)) continue;
    const column = i % context.width;
    const row = Math.floor(i / context.width);
    throw fault(
      "bad-feature",
      row,
      context.values[i]!,
      `feature ${column}`,
      "is not a finite number",
      "Repair the feature spec",
    );
  }
}

function checkChain(log: LoggedDecisions, chain: Chain): void {
  const { episode } = log;
  if (episode === undefined)
    throw new RollbookError(
      "no-episodes",
      {},
      "a chain needs the `episode` column. Add the episode of each row.",
    );
  if (!(chain.discount >= 0 && chain.discount <= 1)) {
    const { discount } = chain;
    throw new RollbookError("bad-discount", { discount }, `discount ${discount} is not in [0, 1].`);
  }
  const units = unitsBy(episode);
  const start = startsOf(units);
  if (chain.unit !== undefined) checkUnits(chain.unit, units);
  // An episode of T rows holds the steps 0 … T−1: each row takes its own place, and no place is taken twice.
  const placed = new Int32Array(chain.step.length).fill(-1);
  for (let row = 0; row < chain.step.length; row++) {
    const unit = units.of[row]!;
    const step = chain.step[row]!;
    const place = start[unit]! + step;
    const wrong =
      step < 0
        ? "is negative"
        : place >= start[unit + 1]!
          ? "leaves a hole"
          : placed[place]! >= 0
            ? "occurs twice"
            : "";
    if (wrong !== "") {
      const length = start[unit + 1]! - start[unit]!;
      const remedy = `Episode ${episode[row]} has ${length} rows: its steps are 0 … ${length - 1}, each once`;
      throw fault("bad-step", row, step, "step", wrong, remedy);
    }
    placed[place] = row;
  }
  if (log.rewardRange === undefined) return;
  for (let unit = 0; unit < units.count; unit++) {
    const rows = placed.subarray(start[unit], start[unit + 1]);
    const value = rows.reduceRight((later, row) => log.reward[row]! + chain.discount * later, 0);
    if (!isWithin(value, log.rewardRange)) throw rangeBroken(rows[0]!, value, "return", log.rewardRange);
  }
}

/** Returns are sums: equal returns may differ in their last bits. */
export const SUM_ROUNDING = 1e-12;

export function isWithin(value: number, { low, high }: OutcomeRange): boolean {
  const slack = SUM_ROUNDING * Math.max(Math.abs(low), Math.abs(high));
  return value >= low - slack && value <= high + slack;
}

function rangeBroken(row: number, value: number, what: string, { low, high }: OutcomeRange): RollbookError {
  const wrong = `is outside the stated range ${low} … ${high}`;
  return fault("range-broken", row, value, what, wrong, "State the true range");
}

function checkUnits(unit: Int32Array, episodes: Units): void {
  const first = new Map<number, number>();
  for (const [row, episode] of episodes.of.entries()) {
    const expected = first.get(episode) ?? unit[row]!;
    first.set(episode, expected);
    if (unit[row] === expected) continue;
    const remedy = "Give all rows of an episode one unit, or leave the episode out";
    throw fault("torn-episode", row, unit[row]!, "unit", `differs from its episode's ${expected}`, remedy);
  }
}

function withoutBehaviour(log: LoggedDecisions): { candidates?: Candidates } {
  if (log.candidates === undefined) return {};
  const { count, chosen, target } = log.candidates;
  return { candidates: { count, chosen, target } };
}

function isProbability(p: number): boolean {
  return p >= 0 && p <= 1;
}

function fault(
  code: string,
  row: number,
  value: number,
  what: string,
  wrong: string,
  remedy: string,
): RollbookError {
  return new RollbookError(
    code,
    { row, value: String(value) },
    `row ${row}: ${what} ${value} ${wrong}. ${remedy}.`,
  );
}
