/** Sufficient statistics of bandits: count and reward per candidate, and for linear bandits Σxxᵀ and Σr·x.
 *  In: decisions with outcomes. Out: sums that can be merged. Does not record which decisions were counted: an
 *  increment does. Does not choose: learn/train makes models of the sums. */
import { compareUtf8, RollbookError } from "../../base/index.ts";
import {
  type FeatureReader,
  type FeatureSpec,
  makeFeatureReader,
  type SparseVector,
} from "../../policy/index.ts";
import { type DecisionRow, labelledRows } from "../rows/index.ts";

export interface ArmSums {
  count: number;
  sum: number;
  /** Σxxᵀ, the lower triangle row by row; empty without features. */
  readonly gram: Float64Array;
  /** Σr·x. */
  readonly response: Float64Array;
}

export interface BanditStatistics {
  /** Number of features per decision; 0: only counts and rewards. */
  readonly size: number;
  /** By candidate, in the order of names. Includes candidates that were never chosen. */
  readonly arms: ReadonlyMap<string, ArmSums>;
  readonly decisions: number;
  /** The range of the observed rewards. */
  readonly low: number;
  readonly high: number;
}

/** The state is quadratic in the features: more features would make it slow and large. Use BC for word features. */
const MOST_FEATURES = 512;

/** The sums over all labelled rows, in the order of their ids. */
export function statisticsOf(rows: readonly DecisionRow[], spec?: FeatureSpec): BanditStatistics {
  const counter = new BanditCounter(spec);
  for (const row of rows) counter.see(row);
  for (const row of labelledRows(rows)) counter.add(row);
  return counter.statistics();
}

export class BanditCounter {
  readonly #reader: FeatureReader | undefined;
  readonly #arms = new Map<string, ArmSums>();
  #decisions = 0;
  #low = Number.POSITIVE_INFINITY;
  #high = Number.NEGATIVE_INFINITY;

  constructor(spec?: FeatureSpec) {
    this.#reader = spec === undefined ? undefined : makeFeatureReader(spec);
    const size = this.#reader?.size ?? 0;
    if (size > MOST_FEATURES)
      throw new RollbookError(
        "bad-options",
        { size },
        `linear bandits take at most ${MOST_FEATURES} features; these are ${size}. Name fewer fields and wordBuckets with --features, or use \`train ridge\`, which takes any number.`,
      );
  }

  /** Registers the candidates of a row without learning from the row. */
  see({ candidates }: DecisionRow): void {
    for (const { id } of candidates) this.#armOf(id);
  }

  add(row: DecisionRow & { readonly reward: number }): void {
    const { id, context, candidates, chosen, reward } = row;
    const choice = candidates[chosen];
    if (choice === undefined || !Number.isFinite(reward))
      throw new RollbookError(
        "bad-training-data",
        { id, chosen, reward: String(reward) },
        `decision ${id}: chose ${chosen} of ${candidates.length} candidates, with reward ${reward}. Repair it or leave it out.`,
      );
    this.see(row);
    const arm = this.#armOf(choice.id);
    arm.count++;
    arm.sum += reward;
    if (this.#reader !== undefined) addOuter(arm, this.#reader.context(context), reward);
    this.#decisions++;
    this.#low = Math.min(this.#low, reward);
    this.#high = Math.max(this.#high, reward);
  }

  statistics(): BanditStatistics {
    return {
      size: this.#reader?.size ?? 0,
      arms: new Map([...this.#arms].sort(([a], [b]) => compareUtf8(a, b))),
      decisions: this.#decisions,
      low: this.#low,
      high: this.#high,
    };
  }

  #armOf(id: string): ArmSums {
    let arm = this.#arms.get(id);
    if (arm === undefined) {
      arm = newSums(this.#reader?.size ?? 0);
      this.#arms.set(id, arm);
    }
    return arm;
  }
}

/** Adds up in the given order: the same parts in the same order give the same bits. */
export function mergeStatistics(parts: readonly BanditStatistics[]): BanditStatistics {
  const { size } = parts[0]!;
  const arms = new Map<string, ArmSums>();
  for (const part of parts)
    for (const [id, sums] of part.arms) {
      const into = arms.get(id) ?? newSums(size);
      arms.set(id, into);
      into.count += sums.count;
      into.sum += sums.sum;
      for (let i = 0; i < into.gram.length; i++) into.gram[i] = into.gram[i]! + sums.gram[i]!;
      for (let i = 0; i < size; i++) into.response[i] = into.response[i]! + sums.response[i]!;
    }
  return {
    size,
    arms: new Map([...arms].sort(([a], [b]) => compareUtf8(a, b))),
    decisions: parts.reduce((sum, part) => sum + part.decisions, 0),
    low: Math.min(...parts.map((part) => part.low)),
    high: Math.max(...parts.map((part) => part.high)),
  };
}

function newSums(size: number): ArmSums {
  return {
    count: 0,
    sum: 0,
    gram: new Float64Array((size * (size + 1)) / 2),
    response: new Float64Array(size),
  };
}

function addOuter(
  { gram, response }: ArmSums,
  { indices, values, count }: SparseVector,
  reward: number,
): void {
  for (let e = 0; e < count; e++) {
    const [at, value] = [indices[e]!, values[e]!];
    response[at] = response[at]! + reward * value;
    for (let f = 0; f <= e; f++) {
      const other = indices[f]!;
      const place = at >= other ? (at * (at + 1)) / 2 + other : (other * (other + 1)) / 2 + at;
      gram[place] = gram[place]! + value * values[f]!;
    }
  }
}
