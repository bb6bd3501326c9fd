/** UCI multiclass files (numbers, class label last, separated by commas or spaces), and the classification-to-bandit
 *  conversion of Dudík, Langford and Li (2011). The classes are the actions, the reward is 1 for the right class, and a
 *  logging policy reveals only the reward of its own choice. So the value of any policy is known exactly. */
import { type Rng, RollbookError } from "../../../src/base/index.ts";
import { badRow, toNumber } from "../../../src/convert/foreign-decision.ts";
import { readLines } from "../../../src/convert/text-lines.ts";
import type { LoggedDecisions } from "../../../src/judge/ope/index.ts";
import { drawIndex } from "../../../test/support/draw-index.ts";

export interface LabelledRow {
  readonly line: number;
  readonly features: Float64Array;
  readonly label: string;
}

export async function* readMulticlass(file: string): AsyncGenerator<LabelledRow> {
  let width = -1;
  for await (const { text, line } of readLines(file)) {
    const parts = text.trim().split(/[\s,]+/);
    if (parts.length === 1 && parts[0] === "") continue;
    const label = parts.pop()!;
    const place = { file, line };
    if (width < 0) width = parts.length;
    if (parts.length !== width || width === 0)
      throw badRow(place, `${parts.length} features, the first row has ${width}`, "Repair the row");
    yield {
      line,
      features: Float64Array.from(parts, (part, i) => toNumber(part, `feature ${i}`, place)),
      label,
    };
  }
}

export interface Multiclass {
  readonly width: number;
  /** Row-major, rows × width. */
  readonly features: Float64Array;
  /** Index into `classes`. */
  readonly label: Int32Array;
  readonly classes: readonly string[];
}

export async function loadMulticlass(file: string): Promise<Multiclass> {
  const rows: LabelledRow[] = [];
  for await (const row of readMulticlass(file)) rows.push(row);
  const classes = [...new Set(rows.map((row) => row.label))].sort();
  const width = rows[0]?.features.length ?? 0;
  if (classes.length < 2)
    throw new RollbookError(
      "one-class",
      { file },
      `${file}: fewer than two classes. A bandit needs a choice.`,
    );
  const features = new Float64Array(rows.length * width);
  rows.forEach((row, i) => {
    features.set(row.features, i * width);
  });
  const numbers = new Map(classes.map((name, i) => [name, i]));
  return { width, features, label: Int32Array.from(rows, (row) => numbers.get(row.label)!), classes };
}

/** Both policies as distributions, rows × classes. */
export interface BanditPolicies {
  readonly behaviour: Float64Array;
  readonly target: Float64Array;
}

/** Draws one action per row of `rows` by the behaviour policy and reveals only its reward. */
export function asBandit(
  data: Multiclass,
  { behaviour, target, rows, rng }: BanditPolicies & { rows: Int32Array; rng: Rng },
): LoggedDecisions {
  const count = data.classes.length;
  const log = {
    reward: new Float64Array(rows.length),
    behaviour: new Float64Array(rows.length),
    target: new Float64Array(rows.length),
    candidates: {
      count,
      chosen: new Int32Array(rows.length),
      target: new Float64Array(rows.length * count),
      behaviour: new Float64Array(rows.length * count),
    },
    context: { width: data.width, values: new Float64Array(rows.length * data.width) },
  };
  rows.forEach((row, i) => {
    const action = drawIndex(behaviour, rng, row * count, count);
    log.reward[i] = action === data.label[row] ? 1 : 0;
    log.behaviour[i] = behaviour[row * count + action]!;
    log.target[i] = target[row * count + action]!;
    log.candidates.chosen[i] = action;
    log.candidates.target.set(target.subarray(row * count, (row + 1) * count), i * count);
    log.candidates.behaviour.set(behaviour.subarray(row * count, (row + 1) * count), i * count);
    log.context.values.set(data.features.subarray(row * data.width, (row + 1) * data.width), i * data.width);
  });
  return log;
}

/** The exact value of a policy over all rows: its probability of the right class. */
export function multiclassValue(data: Multiclass, policy: Float64Array): number {
  let total = 0;
  for (let i = 0; i < data.label.length; i++) total += policy[i * data.classes.length + data.label[i]!]!;
  return total / data.label.length;
}
