/** Gathers streamed decisions into the columns that judge/ope reads, asking the target policy row by row.
 *  Unlabelled rows are left out and counted, never taken as 0. Memory: 8 bytes a number, nothing per row besides. */
import { RollbookError } from "../base/errors.ts";
import type { LoggedDecisions } from "../judge/ope/logged-decisions.ts";
import type { ForeignDecision } from "./foreign-decision.ts";

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
  { target, features, discount }: ColumnsOptions<Row>,
): Promise<GatheredDecisions> {
  const [reward, behaviour, targetOfChosen] = [new Growing(), new Growing(), new Growing()];
  const [chosen, targetAll, behaviourAll, values] = [
    new Growing(),
    new Growing(),
    new Growing(),
    new Growing(),
  ];
  const [episode, step] = [new Growing(), new Growing()];
  const episodes = new Map<string, number>();
  let unlabelled = 0;
  let everyDistribution = true;
  let count = 0;
  let width = 0;
  for await (const row of rows) {
    if (row.reward === undefined) {
      unlabelled++;
      continue;
    }
    const distribution = target(row);
    count = sameLength(count, distribution.length, row.line);
    reward.push(row.reward);
    behaviour.push(row.propensity ?? Number.NaN);
    targetOfChosen.push(distribution[row.action] ?? Number.NaN);
    chosen.push(row.action);
    targetAll.append(distribution);
    if (row.distribution?.length === count) behaviourAll.append(row.distribution);
    else everyDistribution = false;
    if (features !== undefined) {
      const dense = features(row);
      width = sameLength(width, dense.length, row.line);
      values.append(dense);
    }
    if (row.episode !== undefined) {
      const id = episodes.get(row.episode) ?? episodes.size;
      episodes.set(row.episode, id);
      episode.push(id);
      step.push(row.step ?? 0);
    }
  }
  const inEpisodes = episode.length === reward.length && reward.length > 0;
  const log: LoggedDecisions = {
    reward: reward.done(),
    behaviour: behaviour.done(),
    target: targetOfChosen.done(),
    candidates: {
      count,
      chosen: Int32Array.from(chosen.done()),
      target: targetAll.done(),
      ...(everyDistribution && reward.length > 0 ? { behaviour: behaviourAll.done() } : {}),
    },
    ...(features === undefined ? {} : { context: { width, values: values.done() } }),
    ...(inEpisodes ? { episode: Int32Array.from(episode.done()) } : {}),
    ...(inEpisodes && discount !== undefined
      ? { chain: { step: Int32Array.from(step.done()), discount } }
      : {}),
  };
  return { log, unlabelled };
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
