/** The rows of a judge split prepared for evaluation: columns, propensities, and the outcome of each candidate at each row.
 *  In: rows, an Rng. Out: the value of any policy on them, by the off-policy panel and row by row. Pure.
 *  An outcome is the known one, else q̂ + 1{chosen}·(r − q̂)/p. The mean of these under a policy is its DR estimate, so
 *  differences, frontiers and bands built on them are paired with the panel. */
import { type Rng, RollbookError } from "../../base/index.ts";
import { armsOf, denseSpec, fieldsOf } from "../../learn/index.ts";
import { makeFeatureReader } from "../../policy/index.ts";
import {
  type Context,
  checkDecisions,
  checkWithoutPropensities,
  crossFitMatrix,
  type Diagnostics,
  type Disagreement,
  diagnose,
  disagreementsOf,
  doublyRobust,
  type Estimate,
  explainFault,
  ips,
  judgePolicy,
  type LoggedDecisions,
  meanOverRows,
  type PanelResult,
  predictionsFrom,
  type SupportLimits,
  sensitivityBounds,
  snips,
  supportFaults,
  type Units,
  unitsOf,
  withEstimatedPropensities,
} from "../ope/index.ts";
import { type JudgedRow, type Measure, measuresIn, requireRows } from "./judged-row.ts";

export interface EvaluationOptions {
  readonly rng: Rng;
  readonly level?: number;
  readonly replicates?: number;
  readonly limits?: SupportLimits;
  /** For logs without propensities: estimate them, and never certify. Otherwise such a log is an error. */
  readonly estimatePropensities?: boolean;
}

export interface Support {
  readonly diagnostics: Diagnostics;
  /** Why the log does not support an estimate; empty if it does. */
  readonly reasons: readonly string[];
  readonly disagreements: readonly Disagreement[];
}

/** A policy's distribution over the candidates of a row. */
export type Distribution = (row: JudgedRow, index: number) => readonly number[];

export class EvaluationData {
  readonly rows: readonly JudgedRow[];
  /** All candidates that occur: the columns of every matrix here. */
  readonly candidates: readonly string[];
  readonly units: Units;
  readonly measures: readonly Measure[];
  /** Whether the outcome of every candidate is known. */
  readonly full: boolean;
  readonly certified: boolean;
  readonly options: EvaluationOptions;
  readonly #log: LoggedDecisions;
  readonly #models = new Map<Measure, Float64Array>();
  readonly #outcomes = new Map<Measure, Float64Array>();

  constructor(rows: readonly JudgedRow[], options: EvaluationOptions) {
    this.rows = requireRows(rows);
    this.options = options;
    this.candidates = armsOf(rows);
    this.measures = measuresIn(rows);
    this.full = rows.every((row) => row.known !== undefined);
    const log = columnsOf(rows, this.candidates);
    const missing = rows.findIndex((row) => row.propensity === null);
    if (missing >= 0 && options.estimatePropensities !== true) throw noPropensity(rows[missing]!, missing);
    this.certified = missing < 0;
    if (this.certified) checkRows(rows, () => checkDecisions(log));
    else checkRows(rows, () => checkWithoutPropensities(log));
    this.#log = this.certified
      ? log
      : withEstimatedPropensities(log, { rng: options.rng.split("propensities") });
    this.units = unitsOf(this.#log);
  }

  /** π as a matrix, rows × candidates. */
  target(distribution: Distribution): Float64Array {
    return spread(this.rows, this.candidates, distribution);
  }

  /** Whether the log supports an estimate, and whether its unbiased estimators agree. */
  support(target: Float64Array, measure: Measure): Support {
    const log = this.#logOf(target, measure);
    const { diagnostics, faults, reasons } = this.#faults(log);
    if (faults.length > 0) return { diagnostics, reasons, disagreements: [] };
    const q = predictionsFrom(log, this.#model(measure));
    const unbiased = [ips(log), snips(log), doublyRobust(log, q)];
    return { diagnostics, reasons, disagreements: disagreementsOf(unbiased) };
  }

  /** Why the log does not support an estimate of a policy; empty if it does, or if every outcome is known. */
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
      predictions: predictionsFrom(log, this.#model(measure)),
      ...(level === undefined ? {} : { level }),
      ...(replicates === undefined ? {} : { replicates }),
      ...(limits === undefined ? {} : { limits }),
    });
    if (this.certified || verdict.kind === "refused") return verdict;
    const sensitivity = sensitivityBounds(log, level === undefined ? {} : { level });
    return { ...verdict, certification: "not certified", sensitivity };
  }

  /** The outcome of every candidate at every row: known, or its unbiased reconstruction. */
  outcomes(measure: Measure): Float64Array {
    const found = this.#outcomes.get(measure);
    if (found !== undefined) return found;
    const known = this.rows.every((row) => row.known?.every((each) => each[measure] !== null) === true);
    const made = known ? this.#known(measure) : this.#reconstructed(measure);
    this.#outcomes.set(measure, made);
    return made;
  }

  /** The mean of a policy's outcomes over rows, rows of one unit together. */
  value(name: string, target: Float64Array, measure: Measure): Estimate {
    const outcomes = this.outcomes(measure);
    const count = this.candidates.length;
    const terms = new Float64Array(this.rows.length);
    for (let i = 0; i < terms.length; i++)
      for (let a = 0; a < count; a++)
        terms[i] = terms[i]! + target[i * count + a]! * outcomes[i * count + a]!;
    return this.mean(name, terms);
  }

  /** The mean outcome of the logged choices. */
  logged(measure: Measure): Estimate {
    return this.mean(
      "mean",
      Float64Array.from(this.rows, (row) => row.measures[measure]!),
    );
  }

  mean(name: string, terms: Float64Array): Estimate {
    return meanOverRows(name, terms, this.units);
  }

  /** The logged probability of each row's choice. */
  get propensities(): Float64Array {
    return this.#log.behaviour;
  }

  #faults(log: LoggedDecisions) {
    const diagnostics = diagnose(log);
    const faults = supportFaults(diagnostics, this.options.limits);
    return { diagnostics, faults, reasons: faults.map((fault) => explainFault(fault, this.candidates)) };
  }

  #logOf(target: Float64Array, measure: Measure): LoggedDecisions {
    const candidates = this.#log.candidates!;
    return {
      ...this.#log,
      reward: Float64Array.from(this.rows, (row) => row.measures[measure]!),
      target: Float64Array.from(candidates.chosen, (a, i) => target[i * candidates.count + a]!),
      candidates: { ...candidates, target },
    };
  }

  #model(measure: Measure): Float64Array {
    const found = this.#models.get(measure);
    if (found !== undefined) return found;
    const made = this.#priced(measure) ?? this.#crossFitted(measure);
    this.#models.set(measure, made);
    return made;
  }

  /** Prices are known beforehand, so they replace the cost model. */
  #priced(measure: Measure): Float64Array | undefined {
    if (measure !== "cost" || !this.rows.every((row) => row.prices !== undefined)) return undefined;
    return this.target((row) => row.prices!);
  }

  #crossFitted(measure: Measure): Float64Array {
    const log = this.#logOf(this.#log.candidates!.target, measure);
    return crossFitMatrix(log, { rng: this.options.rng.split(`model ${measure}`) });
  }

  #known(measure: Measure): Float64Array {
    const out = new Float64Array(this.rows.length * this.candidates.length);
    const places = new Map(this.candidates.map((id, a) => [id, a]));
    for (const [i, row] of this.rows.entries())
      for (const [c, { id }] of row.candidates.entries())
        out[i * this.candidates.length + places.get(id)!] = row.known![c]![measure]!;
    return out;
  }

  #reconstructed(measure: Measure): Float64Array {
    const { chosen, count } = this.#log.candidates!;
    const out = this.#model(measure).slice();
    for (const [i, row] of this.rows.entries()) {
      const at = i * count + chosen[i]!;
      out[at] = out[at]! + (row.measures[measure]! - out[at]!) / this.#log.behaviour[i]!;
    }
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

function noPropensity({ id }: JudgedRow, row: number): RollbookError {
  return new RollbookError(
    "missing-propensity",
    { row, decision: id },
    `decision ${id} (row ${row}): its propensity was not logged. Log the probability of every choice; \`rollbook evaluate --estimate-propensities\` guesses it and certifies nothing.`,
  );
}
