/** RLlib JSON output: one step per line, or one sample batch (columns of steps) per line.
 *  `dones` does not distinguish termination from a time limit, so such an end is "unknown". `terminateds` and
 *  `truncateds` do. */
import { exp, type Json, softmax } from "../base/index.ts";
import {
  badRow,
  type ForeignDecision,
  type LinePlace,
  toAction,
  toIndex,
  toNumber,
  toPropensity,
} from "./foreign-decision.ts";
import { type JsonFields, readJsonLines } from "./json-lines.ts";

/** action_prob is float32. The softmax of the inputs is the policy's distribution if it matches this closely. */
const FLOAT32_TOLERANCE = 1e-4;

export async function* readRllibJson(file: string): AsyncGenerator<ForeignDecision> {
  // Counts the steps of the current episode only, so that memory is bounded for any number of episodes.
  let episode: string | undefined;
  let step = 0;
  for await (const { value, place } of readJsonLines(file, "One step or one batch per line")) {
    for (const row of stepsOf(value, place)) {
      const id = row.eps_id === undefined ? undefined : String(row.eps_id);
      step = id !== undefined && id === episode ? step + 1 : 0;
      episode = id;
      const t = row.t === undefined ? step : toIndex(row.t, "t", place);
      yield decisionOf(row, { place, step: t });
    }
  }
}

function decisionOf(row: JsonFields, { place, step }: { place: LinePlace; step: number }): ForeignDecision {
  const action = toAction(row.actions, "actions", place);
  const propensity = propensityOf(row, place);
  const distribution = distributionOf(row, { action, propensity, place });
  const ending = endingOf(row);
  return {
    line: place.line,
    action,
    ...(distribution === undefined ? {} : { actions: distribution.length, distribution }),
    reward: toNumber(row.rewards, "rewards", place),
    propensity: distribution === undefined ? propensity : distribution[action]!,
    context: listOf(row.obs, "obs", place).map((value, i) => [
      `obs${i}`,
      toNumber(value, `obs[${i}]`, place),
    ]),
    ...(row.eps_id === undefined ? {} : { episode: String(row.eps_id), step }),
    ...(ending === undefined ? {} : { ending }),
  };
}

function propensityOf(row: JsonFields, place: LinePlace): number | undefined {
  if (row.action_prob !== undefined) return toPropensity(row.action_prob, "action_prob", place);
  if (row.action_logp === undefined) return undefined;
  return toPropensity(exp(toNumber(row.action_logp, "action_logp", place)), "exp(action_logp)", place);
}

/** The softmax of action_dist_inputs, if it agrees with the logged probability. */
function distributionOf(
  row: JsonFields,
  { action, propensity, place }: { action: number; propensity: number | undefined; place: LinePlace },
): Float64Array | undefined {
  if (!Array.isArray(row.action_dist_inputs) || propensity === undefined) return undefined;
  const logits = Float64Array.from(row.action_dist_inputs, (x) => toNumber(x, "action_dist_inputs", place));
  const distribution = softmax(logits);
  return Math.abs((distribution[action] ?? 0) - propensity) <= FLOAT32_TOLERANCE ? distribution : undefined;
}

function endingOf(row: JsonFields): ForeignDecision["ending"] {
  if (row.truncateds === true) return "truncated";
  if (row.terminateds === true) return "terminal";
  return row.dones === true ? "unknown" : undefined;
}

/** A batch is recognized by its columns: its `actions` is a list. */
function* stepsOf(line: JsonFields, place: LinePlace): Generator<JsonFields> {
  const { actions } = line;
  if (!Array.isArray(actions)) {
    yield line;
    return;
  }
  const columns = Object.entries(line).filter(([key]) => key !== "type");
  for (const [key, column] of columns) {
    if (typeof column === "string")
      throw badRow(place, `column ${key} is compressed`, "Write the output with compress_columns: []");
    if (!Array.isArray(column) || column.length !== actions.length)
      throw badRow(place, `column ${key} does not hold ${actions.length} steps`, "Repair the batch");
  }
  for (let i = 0; i < actions.length; i++)
    yield Object.fromEntries(columns.map(([key, column]) => [key, (column as readonly Json[])[i]]));
}

function listOf(value: Json | undefined, column: string, place: LinePlace): readonly Json[] {
  if (Array.isArray(value)) return value;
  if (typeof value === "string")
    throw badRow(place, `${column} is compressed`, "Write the output with compress_columns: []");
  if (typeof value === "number") return [value];
  throw badRow(place, `${column} is not a list of numbers`, "Repair the row");
}
