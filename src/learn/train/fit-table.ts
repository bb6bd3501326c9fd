/** Fits the best static table to a log: the baseline of a learned policy.
 *  In: decisions with outcomes. Out: a table at most two questions deep, and all candidates by value. Deterministic.
 *  A leaf's value of a candidate is the self-normalised mean reward of the rows that chose it. With full information it
 *  is the mean of the candidate's outcomes.
 *  A leaf departs from its parent's order only if the gain exceeds one standard error. */
import { compareUtf8, type Json } from "../../base/index.ts";
import type { PolicyModel } from "../../policy/index.ts";
import {
  armsOf,
  type DecisionData,
  isFullInformation,
  labelledRows,
  type OutcomeRow,
} from "../rows/index.ts";

type Labelled = OutcomeRow & { reward: number };
type Scalar = string | number | boolean;
interface NumberRange {
  readonly min?: number;
  readonly max?: number;
}

/** The source of a static table, as `parseStaticTable` reads it from JSON or YAML. */
interface TableSource {
  readonly schema: "rollbook.static-table.v1";
  readonly rules: readonly { readonly when: TableTriggers; readonly choose: readonly string[] }[];
  readonly default: readonly string[];
}
interface TableTriggers {
  readonly promptChars?: NumberRange;
  readonly fields?: Readonly<Record<string, Scalar | NumberRange>>;
}

export interface FittedTable {
  readonly source: TableSource;
  /** Policies that always choose one candidate, best first. A candidate that was never chosen is left out. */
  readonly singles: readonly { readonly id: string; readonly value: number }[];
}

const MOST_QUESTIONS = 2;
/** Least number of rows of a candidate in a leaf; fewer rows are not evidence. */
const LEAST_ROWS = 20;
const THRESHOLDS = 9;

export function fitStaticTable(data: Pick<DecisionData, "rows">): FittedTable {
  const rows = labelledRows(data.rows) as readonly Labelled[];
  const arms = armsOf(rows);
  const log = { arms, places: new Map(arms.map((id, a) => [id, a])), full: isFullInformation(rows) };
  const root = leafOf(rows, log, undefined);
  const leaves = grow(root, { rows, log, when: {}, questions: MOST_QUESTIONS });
  return {
    source: {
      schema: "rollbook.static-table.v1",
      rules: leaves.flatMap(({ when, leaf }) =>
        Object.keys(when).length === 0 ? [] : [{ when, choose: leaf.order }],
      ),
      default: root.order,
    },
    singles: root.order.flatMap((id) => {
      const { count, mean } = root.value.get(id)!;
      return count === 0 ? [] : [{ id, value: mean }];
    }),
  };
}

/** The model with the table of its training rows in its config, as the baseline for later evaluations. */
export function withBaseline(model: PolicyModel, { source, singles }: FittedTable): PolicyModel {
  const baseline = { source, singles } as unknown as Json;
  return { ...model, config: { ...model.config, baseline } };
}

export function baselineOf({ config }: PolicyModel): FittedTable | undefined {
  return config.baseline as unknown as FittedTable | undefined;
}

interface CandidateValue {
  readonly count: number;
  readonly mean: number;
  readonly error: number;
}
interface TableLeaf {
  readonly order: readonly string[];
  readonly value: ReadonlyMap<string, CandidateValue>;
  /** Total gain over the leaf's rows of its choice over its parent's choice. */
  readonly gain: number;
}
/** Facts that all leaves share. */
interface TableLog {
  readonly arms: readonly string[];
  readonly places: ReadonlyMap<string, number>;
  /** True if every outcome of every row is known. */
  readonly full: boolean;
}
interface TableNode {
  readonly rows: readonly Labelled[];
  readonly log: TableLog;
  readonly when: TableTriggers;
  readonly questions: number;
}

function leafOf(rows: readonly Labelled[], log: TableLog, parent: TableLeaf | undefined): TableLeaf {
  const { arms } = log;
  const found = worthOf(rows, log);
  const value = new Map(
    arms.map((arm, a) => {
      const own = found[a]!;
      return [arm, own.count >= LEAST_ROWS || parent === undefined ? own : parent.value.get(arm)!];
    }),
  );
  const order = [...arms].sort((a, b) => value.get(b)!.mean - value.get(a)!.mean || compareUtf8(a, b));
  if (parent === undefined) return { order, value, gain: 0 };
  const [best, before] = [value.get(order[0]!)!, value.get(parent.order[0]!)!];
  const gain = best.mean - before.mean;
  // The gain does not exceed its standard error: keep the parent's order.
  if (!(gain > Math.sqrt(best.error ** 2 + before.error ** 2))) return { ...parent, value, gain: 0 };
  return { order, value, gain: gain * rows.length };
}

/** Self-normalised by the logged propensity. Without propensities every row has equal weight. One entry per arm. */
function worthOf(rows: readonly Labelled[], { arms, places, full }: TableLog): CandidateValue[] {
  const [top, bottom, counts] = [arms, arms, arms].map((each) => new Float64Array(each.length)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  const visit = (each: (arm: number, reward: number, propensity: number) => void) => {
    for (const { candidates, chosen, reward, propensity } of rows) {
      if (!full) each(places.get(candidates[chosen]!.id)!, reward, propensity ?? 1);
      else
        for (const { id, outcome } of candidates)
          if (outcome !== undefined) each(places.get(id)!, outcome.reward, 1);
    }
  };
  visit((a, reward, propensity) => {
    top[a] = top[a]! + reward / propensity;
    bottom[a] = bottom[a]! + 1 / propensity;
    counts[a] = counts[a]! + 1;
  });
  const squares = new Float64Array(arms.length);
  visit((a, reward, propensity) => {
    squares[a] = squares[a]! + ((reward - top[a]! / bottom[a]!) / propensity) ** 2;
  });
  return arms.map((_, a) =>
    counts[a] === 0
      ? { count: 0, mean: Number.NEGATIVE_INFINITY, error: 0 }
      : { count: counts[a]!, mean: top[a]! / bottom[a]!, error: Math.sqrt(squares[a]!) / bottom[a]! },
  );
}

/** The leaves below, in the order of the table's rules; the node itself if no question has a gain. */
function grow(leaf: TableLeaf, node: TableNode): { when: TableTriggers; leaf: TableLeaf }[] {
  if (node.questions === 0) return [{ when: node.when, leaf }];
  let best: { gain: number; parts: readonly RowPart[] } = { gain: 0, parts: [] };
  for (const parts of questionsOf(node)) {
    const gain = parts.reduce((sum, { rows }) => sum + leafOf(rows, node.log, leaf).gain, 0);
    if (gain > best.gain) best = { gain, parts };
  }
  if (best.parts.length === 0) return [{ when: node.when, leaf }];
  return best.parts.flatMap(({ rows, when }) => {
    const child = { ...node, rows, when, questions: node.questions - 1 };
    return grow(leafOf(rows, node.log, leaf), child);
  });
}

interface RowPart {
  readonly rows: readonly Labelled[];
  readonly when: TableTriggers;
}

/** Every split of the rows by one fact: the prompt's length, a number, or each value of a category. */
function* questionsOf({ rows, when }: TableNode): Generator<readonly RowPart[]> {
  const chars = (row: Labelled) => row.context.prompt.length;
  for (const at of thresholds(rows.map(chars)))
    yield halves(rows, { of: chars, at, when: (range) => withChars(when, range) });
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.context.fields)))].sort(compareUtf8);
  for (const name of names) {
    const values = rows.flatMap((row) => row.context.fields[name] ?? []);
    const distinct = [...new Set(values)];
    if (values.length < rows.length || distinct.length < 2) continue;
    const of = (row: Labelled) => row.context.fields[name]!;
    if (distinct.every((value) => typeof value === "number") && distinct.length > 2) {
      for (const at of thresholds(values as number[]))
        yield halves(rows, {
          of: of as (row: Labelled) => number,
          at,
          when: (r) => withField(when, name, r),
        });
    } else yield byValue(rows, { of, when: (value) => withField(when, name, value), rest: when });
  }
}

/** One part for every value with enough rows. The other rows stay with the rule above. */
function byValue(
  rows: readonly Labelled[],
  options: { of: (row: Labelled) => Scalar; when: (value: Scalar) => TableTriggers; rest: TableTriggers },
): readonly RowPart[] {
  const { of, when, rest } = options;
  const parts = new Map<Scalar, Labelled[]>();
  for (const row of rows) {
    const own = parts.get(of(row));
    if (own === undefined) parts.set(of(row), [row]);
    else own.push(row);
  }
  const sorted = [...parts].sort(([a], [b]) => compareUtf8(String(a), String(b)));
  const few = sorted.flatMap(([, own]) => (own.length < LEAST_ROWS ? own : []));
  const many = sorted.flatMap(([value, own]) =>
    own.length < LEAST_ROWS ? [] : [{ rows: own, when: when(value) }],
  );
  return few.length === 0 ? many : [...many, { rows: few, when: rest }];
}

/** The first matching rule applies, so the second half may begin at the first half's end. */
function halves(
  rows: readonly Labelled[],
  options: { of: (row: Labelled) => number; at: number; when: (range: NumberRange) => TableTriggers },
): readonly RowPart[] {
  const { of, at, when } = options;
  return [
    { rows: rows.filter((row) => of(row) <= at), when: when({ max: at }) },
    { rows: rows.filter((row) => of(row) > at), when: when({ min: at }) },
  ];
}

/** The deciles that leave rows on both sides. */
function thresholds(values: readonly number[]): number[] {
  const sorted = [...values].sort((a, b) => a - b);
  const top = sorted.at(-1);
  const cuts = Array.from(
    { length: THRESHOLDS },
    (_, i) => sorted[Math.floor(((i + 1) * sorted.length) / (THRESHOLDS + 1))]!,
  );
  return [...new Set(cuts)].filter((cut) => cut !== undefined && cut < top!);
}

function withChars(when: TableTriggers, range: NumberRange): TableTriggers {
  return { ...when, promptChars: { ...when.promptChars, ...range } };
}

function withField(when: TableTriggers, name: string, value: Scalar | NumberRange): TableTriggers {
  const before = when.fields?.[name];
  const merged = typeof value === "object" && typeof before === "object" ? { ...before, ...value } : value;
  return { ...when, fields: { ...when.fields, [name]: merged } };
}
