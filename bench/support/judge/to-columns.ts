/** Gathers streamed decisions into the columns that judge/ope reads, asking the target policy row by row.
 *  Unlabelled rows are left out and counted, never taken as 0. Memory: 8 bytes a number, nothing per row besides. */
import { RollbookError } from "../../../src/base/index.ts";
import type { ForeignDecision } from "../../../src/convert/foreign-decision.ts";
import type { LoggedDecisions } from "../../../src/judge/ope/index.ts";

export interface ColumnsOptions<Row extends ForeignDecision> {
  /** The target's probability of every candidate of the row; its length is the same for all rows. */
  readonly target: (row: Row) => Float64Array;
  /** Dense features of the row; its length is the same for all rows. */
  readonly features?: (row: Row) => ArrayLike<number>;
  /** For chains: the discount. Rows need episode and step. */
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
  readonly #reward = new Growing();
  readonly #behaviour = new Growing();
  readonly #target = new Growing();
  readonly #chosen = new Growing();
  readonly #targetAll = new Growing();
  readonly #behaviourAll = new Growing();
  readonly #features = new Growing();
  readonly #episode = new Growing();
  readonly #step = new Growing();
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

  /** What only some rows carry is no column: a full behaviour distribution and episodes enter if all rows have them. */
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
      reward: this.#reward.done(),
      behaviour: this.#behaviour.done(),
      target: this.#target.done(),
      candidates: {
        count: this.#count,
        chosen: Int32Array.from(this.#chosen.done()),
        target: this.#targetAll.done(),
        ...(everyDistribution ? { behaviour: this.#behaviourAll.done() } : {}),
      },
      ...(features === undefined ? {} : { context: { width: this.#width, values: this.#features.done() } }),
      ...(everyEpisode ? { episode: Int32Array.from(this.#episode.done()) } : {}),
      ...(chained ? { chain: { step: Int32Array.from(this.#step.done()), discount } } : {}),
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

class Growing {
  #values = new Float64Array(1024);
  length = 0;

  push(value: number): void {
    this.#room(1);
    this.#values[this.length++] = value;
  }

  append(values: ArrayLike<number>): void {
    this.#room(values.length);
    this.#values.set(values, this.length);
    this.length += values.length;
  }

  done(): Float64Array {
    return this.#values.slice(0, this.length);
  }

  #room(more: number): void {
    if (this.length + more <= this.#values.length) return;
    const grown = new Float64Array(Math.max(this.#values.length * 2, this.length + more));
    grown.set(this.#values);
    this.#values = grown;
  }
}
