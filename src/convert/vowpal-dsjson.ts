/** Decision Service JSON (dsjson) of Vowpal Wabbit and Azure Personalizer: one event per line with context `c`, ranked
 *  actions `a` (from 1, the chosen action first), their probabilities `p`, and the label. Rewards are −cost. */
import { isObject, type Json } from "../base/index.ts";
import {
  badRow,
  type ForeignDecision,
  type LinePlace,
  type NamedFeatures,
  timeOf,
  toIndex,
  toNumber,
  toPropensity,
} from "./foreign-decision.ts";
import { type JsonFields, readJsonLines } from "./json-lines.ts";

export async function* readDsjson(file: string): AsyncGenerator<ForeignDecision> {
  for await (const { value, place } of readJsonLines(file, "One event per line"))
    yield decisionOf(value, place);
}

function decisionOf(event: JsonFields, place: LinePlace): ForeignDecision {
  const context = event.c;
  if (!isObject(context) || !Array.isArray(context._multi))
    throw badRow(
      place,
      "no context c with candidates c._multi",
      "Only single-choice (cb) events can be read",
    );
  if (typeof event.pdrop === "number" && event.pdrop > 0)
    throw badRow(
      place,
      "events were dropped at random (pdrop)",
      "Export with pdrop 0: dropped events change every mean",
    );
  const candidates = context._multi.map((candidate) => flatten(candidate));
  const distribution = distributionOf(event, candidates.length, place);
  const action = toIndex(event._label_Action, "_label_Action", place) - 1;
  if (action < 0 || action >= candidates.length)
    throw badRow(place, `_label_Action ${action + 1} is not in 1 … ${candidates.length}`, "Repair the event");
  const propensity = toPropensity(event._label_probability, "_label_probability", place);
  // Logged labels are float32. A larger difference means that the two probabilities contradict each other.
  if (Math.abs(distribution[action]! - propensity) > 1e-5)
    throw badRow(
      place,
      `_label_probability ${propensity} is not p's ${distribution[action]}`,
      "Log the final distribution",
    );
  return {
    line: place.line,
    ...(typeof event.EventId === "string" && event.EventId !== "" ? { id: event.EventId } : {}),
    ...(typeof event.Timestamp === "string" ? timeOf(event.Timestamp, "Timestamp", place) : {}),
    action,
    actions: candidates.length,
    reward: event._skipLearn === true ? undefined : 0 - toNumber(event._label_cost, "_label_cost", place),
    propensity: distribution[action]!,
    distribution,
    context: flatten(Object.fromEntries(Object.entries(context).filter(([key]) => key !== "_multi"))),
    candidates,
  };
}

function distributionOf(event: JsonFields, count: number, place: LinePlace): Float64Array {
  const { a, p } = event;
  if (!Array.isArray(a) || !Array.isArray(p) || a.length !== count || p.length !== count)
    throw badRow(place, `a and p do not list the ${count} candidates`, "Repair the event");
  const distribution = new Float64Array(count);
  a.forEach((action, rank) => {
    const index = toIndex(action, "a", place) - 1;
    if (index < 0 || index >= count)
      throw badRow(place, `a lists action ${action}`, "Actions are numbered from 1");
    distribution[index] = toNumber(p[rank], "p", place);
  });
  return distribution;
}

/** Keys that begin with _ are not features. Arrays of objects are namespaces without a number. */
function flatten(value: Json, prefix = ""): NamedFeatures {
  if (typeof value === "number") return [[prefix, value]];
  if (typeof value === "boolean") return value ? [[prefix, 1]] : [];
  if (typeof value === "string") return [[`${prefix}=${value}`, 1]];
  if (value === null) return [];
  if (Array.isArray(value))
    return value.flatMap((item, i) => flatten(item, isObject(item) ? prefix : `${prefix}[${i}]`));
  return Object.entries(value)
    .filter(([key]) => !key.startsWith("_"))
    .flatMap(([key, item]) => flatten(item, prefix === "" ? key : `${prefix}^${key}`));
}
