/** The rows of a judge split, prepared for evaluation: columns, propensities, and the outcome of each candidate at each
 *  row. In: rows, an Rng. Out: the value of any policy on them, by the off-policy panel and row by row. Pure.
 *  A value is a plain mean if outcomes are known (`known`), else the panel's DR estimate (`DR`). Differences, frontiers
 *  and bands are paired with it row by row. */
import { given, plural, RollbookError, thousands } from "../../base/index.ts";
import { armsOf, denseSpec, fieldsOf } from "../../learn/index.ts";
import { makeFeatureReader } from "../../policy/index.ts";
import {
  type Context,
  chainDr,
  checkDecisions,
  checkWithoutPropensities,
  crossFitMatrix,
  crossFitQ,
  type Diagnostics,
  type Disagreement,
  diagnose,
  disagreementsOf,
  doublyRobust,
  type Estimate,
  episodesOf,
  explainFaults,
  isWithin,
  judgePolicy,
  type LoggedChoices,
  type LoggedDecisions,
  loggedOutcomes,
  meanOverUnits,
  outcomeWidth,
  type PanelOptions,
  type PanelResult,
  predictionsFrom,
  type Range,
  type RewardPredictions,
  rareChoices,
  recalibrate,
  returnsOf,
  sensitivityBounds,
  supportFaults,
  type Units,
  unbiasedEstimates,
  unitsOf,
  withEstimatedPropensities,
} from "../ope/index.ts";
import { chainPlaces } from "./chains.ts";
import {
  type JudgedRow,
  type Measure,
  measuresIn,
  observedOutcomes,
  qualityOf,
  rangeKind,
  requireRows,
} from "./judged-row.ts";

export interface EvaluationOptions
  extends Pick<
    PanelOptions,
    "rng" | "level" | "replicates" | "limits" | "judgeShare" | "unit" | "estimatePropensities"
  > {
  /** Range of outcomes (for chains: of returns), stated before the data. Absent: the observed range. */
  readonly ranges?: Readonly<Partial<Record<"quality" | "cost", Range>>> | undefined;
  /** Judges whole chains: a value is the return of an episode, and each later decision's reward is discounted by this
   *  factor. Absent: each decision is judged by its own outcome. */
  readonly discount?: number | undefined;
  /** The log that contains these rows. A refusal states how often it has a choice. */
  readonly wholeLog?: LoggedChoices | undefined;
}

export interface Support {
  readonly diagnostics: Diagnostics;
  /** Reasons why the log does not support an estimate; empty if it does. */
  readonly reasons: readonly string[];
  readonly disagreements: readonly Disagreement[];
}

/** A policy's distribution over the candidates of a row. */
export type Distribution = (row: JudgedRow, index: number) => readonly number[];

export class EvaluationData {
  readonly rows: readonly JudgedRow[];
  /** All candidates that occur. They are the columns of every matrix here. */
  readonly candidates: readonly string[];
  readonly units: Units;
  readonly measures: readonly Measure[];
  /** True if the outcome of every candidate is known. */
  readonly full: boolean;
  readonly certified: boolean;
  readonly options: EvaluationOptions;
  readonly #log: LoggedDecisions;
  readonly #models = new Map<Measure, Float64Array>();
  readonly #outcomes = new Map<Measure, Float64Array>();
  readonly #insideRange = new Set<Measure>();

  constructor(rows: readonly JudgedRow[], options: EvaluationOptions) {
    this.rows = requireRows(rows);
    this.options = options;
    this.candidates = armsOf(rows);
    this.measures = measuresIn(rows);
    this.full = options.discount === undefined && rows.every((row) => row.known !== undefined);
    const columns = columnsOf(rows, this.candidates);
    const { discount } = options;
    const log = discount === undefined ? columns : { ...columns, ...chainsIn(rows, discount) };
    const missing = rows.filter((row) => row.propensity === null);
    if (missing.length > 0 && (options.estimatePropensities !== true || discount !== undefined))
      throw noPropensity(missing, rows.length);
    this.certified = missing.length === 0;
    if (this.certified) checkRows(rows, () => checkDecisions(log));
    else checkRows(rows, () => checkWithoutPropensities(log));
    this.#log = this.certified
      ? log
      : withEstimatedPropensities(log, { rng: options.rng.split("propensities") });
    this.units = unitsOf(this.#log);
  }

  /** The number of chains and the decisions of the longest; undefined if single decisions are judged. */
  get chains():
    | { readonly episodes: number; readonly horizon: number; readonly discount: number }
    | undefined {
    if (this.#log.chain === undefined) return undefined;
    const { count: episodes, horizon, discount } = episodesOf(this.#log);
    return { episodes, horizon, discount };
  }

  /** π as a matrix, rows × candidates. */
  target(distribution: Distribution): Float64Array {
    return spread(this.rows, this.candidates, distribution);
  }

  /** Support of the log for an estimate, and disagreements between its unbiased estimators. */
  support(target: Float64Array, measure: Measure): Support {
    const log = this.#logOf(target, measure);
    const { diagnostics, faults, reasons } = this.#faults(log);
    if (faults.length > 0) return { diagnostics, reasons, disagreements: [] };
    const q = this.#predictions(log, measure);
    return { diagnostics, reasons, disagreements: disagreementsOf(unbiasedEstimates(log, q)) };
  }

  /** Reasons why the log does not support an estimate of a policy. Empty if it does, or if every outcome is known. */
  refusals(target: Float64Array): readonly string[] {
    return this.full ? [] : this.#faults(this.#logOf(target, this.measures[0]!)).reasons;
  }

  /** Diagnostics and every estimator, or a refusal with its reasons. */
  panel(target: Float64Array, measure: Measure): PanelResult {
    const { rng, level, replicates, limits } = this.options;
    const log = this.#logOf(target, measure);
    const refusal = this.#faults(log);
    if (refusal.faults.length > 0) return { kind: "refused", ...refusal };
    const verdict = judgePolicy(log, {
      rng: rng.split("panel"),
      predictions: this.#predictions(log, measure),
      ...given({ level, replicates, limits }),
    });
    if (this.certified || verdict.kind === "refused") return verdict;
    const sensitivity = sensitivityBounds(log, level === undefined ? {} : { level });
    return { ...verdict, certification: "not certified", sensitivity };
  }

  #knows(measure: Measure): boolean {
    return this.full && this.rows.every((row) => row.known!.every((each) => each[measure] !== null));
  }

  /** The mean of a policy's outcomes over units. Its name gives the method: `known` or `DR`. */
  value(target: Float64Array, measure: Measure): Estimate {
    this.requireInside(measure);
    const log = this.#logOf(target, measure);
    if (log.chain !== undefined) return chainDr(log, this.#predictions(log, measure));
    return this.#knows(measure)
      ? this.#mean("known", predictionsFrom(log, this.#known(measure)).expected, measure)
      : doublyRobust(log, this.#predictions(log, measure));
  }

  /** The mean outcome of the logged choices. */
  logged(measure: Measure): Estimate {
    this.requireInside(measure);
    const log = this.log(measure);
    return log.chain === undefined ? this.#mean("mean", log.reward, measure) : loggedReturns(log);
  }

  /** The mean of fully observed outcomes, each with weight 1. */
  #mean(name: string, terms: Float64Array, measure: Measure): Estimate {
    const { units } = this;
    // Prices are known beforehand, so there are no unseen outcomes.
    if (this.#isPriced(measure)) return meanOverUnits(name, terms, { units });
    const weights = new Float64Array(terms.length).fill(1);
    const width = outcomeWidth(this.log(measure), this.#observed(measure));
    return meanOverUnits(name, terms, { units, exposure: { weights, units, width } });
  }

  /** The outcomes of a measure that were observed; its unseen outcomes are as far apart. */
  #observed(measure: Measure): Float64Array {
    if (!this.#knows(measure)) return loggedOutcomes(this.log(measure));
    return Float64Array.from(observedOutcomes(this.rows), ({ measures }) => measures[measure]!);
  }

  /** Throws at the first outcome that is outside the stated range of the measure. */
  requireInside(measure: Measure): void {
    const range = this.statedRange(measure);
    if (range === undefined || this.#insideRange.has(measure)) return;
    for (const { id, value, of } of this.#everyOutcome(measure)) {
      if (isWithin(value, range)) continue;
      const kind = rangeKind(measure);
      const inLoop = kind === "cost" ? " (in a loop: gate.costRange)" : "";
      throw new RollbookError(
        "range-broken",
        { decision: id, value, ...range },
        `decision ${id} has the ${measure} ${value}${of}, outside the range ${range.low}..${range.high}. State the possible range with --${kind}-range=LOW..HIGH${inLoop}.`,
      );
    }
    this.#insideRange.add(measure);
  }

  /** The logged outcomes (of chains: their returns), then those of all candidates if they are known. */
  *#everyOutcome(measure: Measure): Generator<{ id: string; value: number; of: string }> {
    const log = this.log(measure);
    const episodes = log.chain === undefined ? undefined : episodesOf(log);
    for (const [i, value] of loggedOutcomes(log).entries()) {
      const { id } = this.rows[episodes === undefined ? i : episodes.rows[episodes.start[i]!]!]!;
      yield { id, value, of: episodes === undefined ? "" : " of its whole rollout" };
    }
    if (!this.#knows(measure)) return;
    for (const { id, arm, measures } of observedOutcomes(this.rows))
      yield { id, value: measures[measure]!, of: ` of ${arm}` };
  }

  /** The stated range of one decision's outcome; for chains, of a return. */
  statedRange(measure: Measure): Range | undefined {
    const isStated = measure === "cost" || measure === qualityOf(this.measures);
    return isStated ? this.options.ranges?.[rangeKind(measure)] : undefined;
  }

  /** The log with the measure as its reward, and uniform choice as its target. */
  log(measure: Measure): LoggedDecisions {
    return this.#logOf(this.#log.candidates!.target, measure);
  }

  /** The logged probability of each row's choice. */
  get propensities(): Float64Array {
    return this.#log.behaviour;
  }

  #faults(log: LoggedDecisions) {
    const diagnostics = diagnose(log);
    const { limits, judgeShare, unit, wholeLog } = this.options;
    const faults = supportFaults(diagnostics, limits);
    const { rows } = diagnostics;
    const about = { names: this.candidates, rare: rareChoices(log), judgeShare, unit, rows, wholeLog };
    return { diagnostics, faults, reasons: explainFaults(faults, about) };
  }

  #logOf(target: Float64Array, measure: Measure): LoggedDecisions {
    const candidates = this.#log.candidates!;
    return {
      ...this.#log,
      reward: Float64Array.from(this.rows, (row) => row.measures[measure]!),
      target: Float64Array.from(candidates.chosen, (a, i) => target[i * candidates.count + a]!),
      candidates: { ...candidates, target },
      ...given({ rewardRange: this.statedRange(measure) }),
    };
  }

  /** Predictions of q̂. Prices need no model.
   *  In a chain, a state's value depends on the policy that continues from it. */
  #predictions(log: LoggedDecisions, measure: Measure): RewardPredictions {
    if (log.chain !== undefined)
      return crossFitQ(log, { rng: this.options.rng.split("panel").split("values") });
    const q = predictionsFrom(log, this.#model(measure));
    return this.#isPriced(measure)
      ? { ...q, isExact: true }
      : recalibrate(log, q, { rng: this.options.rng.split("recalibration") });
  }

  #model(measure: Measure): Float64Array {
    const found = this.#models.get(measure);
    if (found !== undefined) return found;
    const made = this.#priced(measure) ?? this.#crossFitted(measure);
    this.#models.set(measure, made);
    return made;
  }

  /** The prices as predictions. They are known beforehand, so they replace the cost model. */
  #priced(measure: Measure): Float64Array | undefined {
    return this.#isPriced(measure) ? this.target((row) => row.prices!) : undefined;
  }

  #isPriced(measure: Measure): boolean {
    return (
      this.options.discount === undefined &&
      measure === "cost" &&
      this.rows.every((row) => row.prices !== undefined)
    );
  }

  #crossFitted(measure: Measure): Float64Array {
    const log = this.#logOf(this.#log.candidates!.target, measure);
    return crossFitMatrix(log, { rng: this.options.rng.split(`model ${measure}`) });
  }

  #known(measure: Measure): Float64Array {
    const found = this.#outcomes.get(measure);
    if (found !== undefined) return found;
    const out = new Float64Array(this.rows.length * this.candidates.length);
    this.#outcomes.set(measure, out);
    const places = new Map(this.candidates.map((id, a) => [id, a]));
    for (const [i, row] of this.rows.entries())
      for (const [c, { id }] of row.candidates.entries())
        out[i * this.candidates.length + places.get(id)!] = row.known![c]![measure]!;
    return out;
  }
}

function columnsOf(rows: readonly JudgedRow[], candidates: readonly string[]): LoggedDecisions {
  const places = new Map(candidates.map((id, a) => [id, a]));
  const count = candidates.length;
  const numbers = new Map<string, number>();
  for (const { unit } of rows) if (!numbers.has(unit)) numbers.set(unit, numbers.size);
  const logged = rows.every((row) => row.behaviour !== undefined);
  const even: Distribution = (row) => {
    const open = row.candidates.filter((one) => one.selectable).length;
    return row.candidates.map((one) => (one.selectable ? 1 / open : 0));
  };
  const target = spread(rows, candidates, even);
  const chosen = Int32Array.from(rows, (row) => places.get(row.candidates[row.chosen]?.id ?? "") ?? -1);
  return {
    reward: Float64Array.from(rows, (row) => row.reward),
    behaviour: Float64Array.from(rows, (row) => row.propensity ?? Number.NaN),
    target: Float64Array.from(chosen, (a, i) => target[i * count + a]!),
    candidates: {
      count,
      chosen,
      target,
      ...(logged ? { behaviour: spread(rows, candidates, (row) => row.behaviour!) } : {}),
    },
    context: contextOf(rows),
    ...(numbers.size === rows.length
      ? {}
      : { episode: Int32Array.from(rows, (row) => numbers.get(row.unit)!) }),
  };
}

/** The rows of each chain as an episode, in the order of their steps. */
function chainsIn(
  rows: readonly JudgedRow[],
  discount: number,
): Required<Pick<LoggedDecisions, "episode" | "chain">> {
  const units = new Map<string, number>();
  for (const { unit } of rows) if (!units.has(unit)) units.set(unit, units.size);
  const [episode, step] = [new Int32Array(rows.length), new Int32Array(rows.length)];
  chainPlaces(rows).forEach((places, e) => {
    places.forEach((row, t) => {
      episode[row] = e;
      step[row] = t;
    });
  });
  const unit = Int32Array.from(rows, (row) => units.get(row.unit)!);
  return { episode, chain: { step, discount, unit } };
}

/** The mean return of the log's episodes, averaged by unit. */
function loggedReturns(log: LoggedDecisions): Estimate {
  const episodes = episodesOf(log);
  const { units, count } = episodes;
  const exposure = { weights: new Float64Array(count).fill(1), units, width: outcomeWidth(log) };
  return meanOverUnits("mean", returnsOf(log, episodes), { units, exposure });
}

function spread(
  rows: readonly JudgedRow[],
  candidates: readonly string[],
  distribution: Distribution,
): Float64Array {
  const places = new Map(candidates.map((id, a) => [id, a]));
  const matrix = new Float64Array(rows.length * candidates.length);
  for (const [i, row] of rows.entries()) {
    const probabilities = distribution(row, i);
    for (const [c, { id }] of row.candidates.entries())
      matrix[i * candidates.length + places.get(id)!] = probabilities[c]!;
  }
  return matrix;
}

function contextOf(rows: readonly JudgedRow[]): Context {
  const reader = makeFeatureReader(denseSpec(fieldsOf(rows)));
  const values = new Float64Array(rows.length * reader.size);
  for (const [i, row] of rows.entries()) {
    const { indices, values: found, count } = reader.context(row.context);
    for (let e = 0; e < count; e++) values[i * reader.size + indices[e]!] = found[e]!;
  }
  return { width: reader.size, values };
}

/** Adds the decision id to an error that names a row by number. */
function checkRows(rows: readonly JudgedRow[], check: () => void): void {
  try {
    check();
  } catch (error) {
    const row = error instanceof RollbookError ? rows[error.fields.row as number] : undefined;
    if (row === undefined) throw error;
    const { code, fields, message } = error as RollbookError;
    throw new RollbookError(code, { ...fields, decision: row.id }, `decision ${row.id}, ${message}`, {
      cause: error,
    });
  }
}

function noPropensity(missing: readonly JudgedRow[], rows: number): RollbookError {
  const [{ id }] = missing as [JudgedRow];
  return new RollbookError(
    "missing-propensity",
    { decision: id, missing: missing.length, rows },
    `${thousands(missing.length)} of ${plural(rows, "row")} that judge have no logged propensity, first decision ${id}. Log the probability of every choice; \`rollbook evaluate --estimate-propensities\` guesses it and certifies nothing.`,
  );
}
