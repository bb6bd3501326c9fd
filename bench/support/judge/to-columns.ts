/** Gathers streamed decisions into the columns that judge/ope reads, and asks the target policy row by row.
 *  Unlabelled rows are left out and counted, never read as 0. Memory: 8 bytes per number, and nothing else per row. */
import { GrowingColumn, RollbookError } from "../../../src/base/index.ts";
import type { ForeignDecision } from "../../../src/convert/foreign-decision.ts";
import type { LoggedDecisions } from "../../../src/judge/ope/index.ts";

export interface ColumnsOptions<Row extends ForeignDecision> {
  /** The target's probability of every candidate of the row; its length is the same for all rows. */
  readonly target: (row: Row) => Float64Array;
  /** Dense features of the row; its length is the same for all rows. */
  readonly features?: (row: Row) => ArrayLike<number>;
  /** Discount for chains. Rows need episode and step. */
  readonly discount?: number;
}

export interface GatheredDecisions {
  readonly log: LoggedDecisions;
  readonly unlabelled: number;
}

export async function toColumns<Row extends ForeignDecision>(
  rows: AsyncIterable<Row>,
  options: ColumnsOptions<Row>,
): Promise<GatheredDecisions> {
  const gathering = new Gathering(options);
  let unlabelled = 0;
  for await (const row of rows) {
    if (row.reward === undefined) unlabelled++;
    else gathering.add(row, row.reward);
  }
  return { log: gathering.done(), unlabelled };
}

class Gathering<Row extends ForeignDecision> {
  readonly #options: ColumnsOptions<Row>;
  readonly #reward = new GrowingColumn("f64");
  readonly #behaviour = new GrowingColumn("f64");
  readonly #target = new GrowingColumn("f64");
  readonly #chosen = new GrowingColumn("f64");
  readonly #targetAll = new GrowingColumn("f64");
  readonly #behaviourAll = new GrowingColumn("f64");
  readonly #features = new GrowingColumn("f64");
  readonly #episode = new GrowingColumn("f64");
  readonly #step = new GrowingColumn("f64");
  readonly #episodes = new Map<string, number>();
  #count = 0;
  #width = 0;

  constructor(options: ColumnsOptions<Row>) {
    this.#options = options;
  }

  add(row: Row, reward: number): void {
    const distribution = this.#options.target(row);
    this.#count = sameLength(this.#count, distribution.length, row.line);
    this.#reward.push(reward);
    this.#behaviour.push(row.propensity ?? Number.NaN);
    this.#target.push(distribution[row.action] ?? Number.NaN);
    this.#chosen.push(row.action);
    this.#targetAll.append(distribution);
    if (row.distribution?.length === this.#count) this.#behaviourAll.append(row.distribution);
    if (this.#options.features !== undefined) {
      const dense = this.#options.features(row);
      this.#width = sameLength(this.#width, dense.length, row.line);
      this.#features.append(dense);
    }
    if (row.episode === undefined) return;
    const id = this.#episodes.get(row.episode) ?? this.#episodes.size;
    this.#episodes.set(row.episode, id);
    this.#episode.push(id);
    this.#step.push(row.step ?? 0);
  }

  /** A full behaviour distribution and episodes become columns only if all rows have them. */
  done(): LoggedDecisions {
    const { features, discount } = this.#options;
    const rows = this.#reward.length;
    const everyDistribution = rows > 0 && this.#behaviourAll.length === rows * this.#count;
    const everyEpisode = rows > 0 && this.#episode.length === rows;
    if (discount !== undefined && !everyEpisode && rows > 0) {
      throw new RollbookError(
        "no-episodes",
        { rows, withEpisode: this.#episode.length },
        `a chain needs the episode of every row; ${this.#episode.length} of ${rows} rows have one. Name its column.`,
      );
    }
    const chained = everyEpisode && discount !== undefined;
    return {
      reward: this.#reward.take(),
      behaviour: this.#behaviour.take(),
      target: this.#target.take(),
      candidates: {
        count: this.#count,
        chosen: Int32Array.from(this.#chosen.take()),
        target: this.#targetAll.take(),
        ...(everyDistribution ? { behaviour: this.#behaviourAll.take() } : {}),
      },
      ...(features === undefined ? {} : { context: { width: this.#width, values: this.#features.take() } }),
      ...(everyEpisode ? { episode: Int32Array.from(this.#episode.take()) } : {}),
      ...(chained ? { chain: { step: Int32Array.from(this.#step.take()), discount } } : {}),
    };
  }
}

function sameLength(expected: number, length: number, line: number): number {
  if (expected === 0 || expected === length) return length;
  throw new RollbookError(
    "ragged-rows",
    { line, length, expected },
    `the row of line ${line} has ${length} values where earlier rows have ${expected}. Pad candidates with probability 0.`,
  );
}
