/** The routing dataset: one decision with its outcome per line of JSON.
 *  In: a path, or a decision. Out: decisions, streamed; a line. Also reads rows without `state` (a plain two-model
 *  log): their candidates are the primary and the fallback, their propensity is unknown. A bad row throws with file and
 *  line. */
import { digestJson, isObject, type Json, parseTime } from "../base/index.ts";
import type { LoggedRow, RewardTerms } from "../learn/index.ts";
import { badRow, type LinePlace, toNumber, toPropensity } from "./foreign-decision.ts";
import { IdTable } from "./id-table.ts";
import { type JsonFields, readJsonLines } from "./json-lines.ts";

const ROUTING_SCHEMA_VERSION = 1;
const DATA_SOURCES = ["real", "synthetic", "unknown"] as const;
type RoutingSource = (typeof DATA_SOURCES)[number];

interface RoutingState {
  prompt: string;
  fields: Record<string, string | number | boolean>;
  candidates: {
    id: string;
    selectable: boolean;
    reasons: string[];
    probability: number | null;
    features: Record<string, number>;
    /** Outcome of choosing this candidate: known in simulators and benchmarks, absent in production. */
    outcome?: { readonly reward: number; readonly terms: RewardTerms };
  }[];
  /** Parts of the reward: the measured values and their weights. */
  terms: RewardTerms;
}

export interface RoutingRow {
  schema_version: number;
  decision_id: string;
  session_id: string;
  task_id: string;
  /** Id of the first decision of the chain. Absent if this decision is the first. */
  chain_id?: string;
  agent_role: string;
  timestamp: string;
  task_complexity_score: number | null;
  primary_failure_count: number | null;
  action_fallback: 0 | 1;
  primary_model: string;
  fallback_model: string;
  model_chosen: string;
  /** Probability of the choice. Null if it was not logged. */
  propensity: number | null;
  /** Null: unlabelled. */
  reward: number | null;
  terminal: boolean;
  reward_version: string;
  data_source: RoutingSource;
  /** Cost of the call in US dollars, if it was recorded. */
  cost_usd?: number;
  state: RoutingState;
}

/** Reads the decisions of a dataset file. Refuses a repeated id. */
export async function* readDecisions(file: string): AsyncGenerator<LoggedRow> {
  const seen = new IdTable();
  const lists = new SharedLists();
  for await (const { value, place } of readJsonLines(file, "Write one row per line")) {
    const read = toLoggedRow(parseRow(value, place));
    const row = { ...read, candidates: lists.shared(read.candidates) };
    const before = seen.add(row.id, place.line);
    if (before !== undefined)
      throw badRow(place, `decision ${row.id} is already on line ${before}`, "Keep one of them");
    yield row;
  }
}

/** Stores equal lists of candidates once: in a long log they take most of a row's memory. */
class SharedLists {
  readonly #known = new Map<string, LoggedRow["candidates"]>();
  #used = 0;

  shared(list: LoggedRow["candidates"]): LoggedRow["candidates"] {
    // Lists with individual probabilities or outcomes are rarely equal, so the search for equal lists stops.
    if (this.#known.size >= MOST_LISTS && this.#used < this.#known.size) return list;
    const key = JSON.stringify(list);
    const known = this.#known.get(key);
    if (known !== undefined) this.#used++;
    else if (this.#known.size < MOST_LISTS) this.#known.set(key, list);
    return known ?? list;
  }
}

const MOST_LISTS = 1024;

/** Facts of a plain log with separate columns in a row. Elsewhere they are fields of the request. */
const FIELD_COLUMNS = ["task_complexity_score", "primary_failure_count"] as const;

/** The row in the form that the rest of the package reads. The fields are those of `state`, and the two columns, which
 *  `toRoutingRow` also takes from the fields. The columns are part of what the router saw: leave them out of a row, or
 *  write null, if the router will lack them when it serves. */
export function toLoggedRow(row: RoutingRow): LoggedRow {
  const { state } = row;
  const extra = Object.fromEntries(
    FIELD_COLUMNS.flatMap((name) => (row[name] === null ? [] : [[name, row[name]]])),
  ) as Record<string, number>;
  return {
    id: row.decision_id,
    task: row.task_id,
    session: row.session_id,
    chain: row.chain_id ?? row.decision_id,
    family: row.agent_role,
    atMs: Date.parse(row.timestamp),
    source: row.data_source,
    context: { prompt: state.prompt, fields: { ...extra, ...state.fields } },
    candidates: state.candidates,
    chosen: state.candidates.findIndex((one) => one.id === row.model_chosen),
    propensity: row.propensity,
    reward: row.reward,
    terminal: row.terminal,
    terms: state.terms,
    ...(row.cost_usd === undefined ? {} : { costUsd: row.cost_usd }),
    rewardFrom: row.reward_version,
  };
}

/** The row as a line of a dataset. `toLoggedRow` restores the same row. */
export function toRoutingRow(row: LoggedRow): RoutingRow {
  const fields = { ...row.context.fields };
  const columns = { task_complexity_score: null, primary_failure_count: null } as Record<
    (typeof FIELD_COLUMNS)[number],
    number | null
  >;
  for (const name of FIELD_COLUMNS) {
    if (typeof fields[name] !== "number") continue;
    columns[name] = fields[name];
    delete fields[name];
  }
  return {
    schema_version: ROUTING_SCHEMA_VERSION,
    decision_id: row.id,
    session_id: row.session,
    task_id: row.task,
    ...(row.chain === row.id ? {} : { chain_id: row.chain }),
    agent_role: row.family,
    timestamp: new Date(row.atMs).toISOString(),
    ...columns,
    ...modelsOf(
      row.candidates.map((one) => one.id),
      row.candidates[row.chosen]!.id,
    ),
    propensity: row.propensity,
    reward: row.reward,
    terminal: row.terminal,
    reward_version: row.rewardFrom,
    data_source: row.source,
    ...(row.costUsd === undefined ? {} : { cost_usd: row.costUsd }),
    state: {
      prompt: row.context.prompt,
      fields,
      candidates: row.candidates.map(({ id, selectable, reasons, probability, features, outcome }) => ({
        id,
        selectable,
        reasons: [...reasons],
        probability,
        features: { ...features },
        ...(outcome === undefined ? {} : { outcome }),
      })),
      terms: row.terms,
    },
  };
}

/** The first candidate is the primary model. The fallback is the model chosen instead, or the next candidate. */
export function modelsOf(
  ids: readonly string[],
  chosen: string,
): Pick<RoutingRow, "action_fallback" | "primary_model" | "fallback_model" | "model_chosen"> {
  const primary = ids[0]!;
  return {
    action_fallback: chosen === primary ? 0 : 1,
    primary_model: primary,
    fallback_model: chosen === primary ? (ids[1] ?? primary) : chosen,
    model_chosen: chosen,
  };
}

function parseRow(raw: JsonFields, place: LinePlace): RoutingRow {
  if (typeof raw.schema === "string" && raw.schema.startsWith("rollbook."))
    throw badRow(
      place,
      `is a record (${raw.schema.slice(0, 80)}), not a decision`,
      `Import a file of records with \`rollbook artifact import ${place.file}\``,
    );
  const version = toNumber(raw.schema_version ?? ROUTING_SCHEMA_VERSION, "schema_version", place);
  if (version !== ROUTING_SCHEMA_VERSION)
    throw badRow(place, `schema_version is ${version}`, `This reads version ${ROUTING_SCHEMA_VERSION}`);
  const chosen = textOf(raw, "model_chosen", place);
  const role = typeof raw.agent_role === "string" ? raw.agent_role : "";
  const state = stateOf(raw.state, { place, models: modelsOfRow(raw, chosen, place), role });
  const defaults = modelsOf(
    state.candidates.map(({ id }) => id),
    chosen,
  );
  const primary = optionalText(raw, "primary_model", place) ?? defaults.primary_model;
  if (!state.candidates.some((one) => one.id === chosen && one.selectable))
    throw badRow(
      place,
      `${chosen} was chosen but is not a selectable candidate`,
      "Add it to state.candidates",
    );
  const fallbackFlag = chosen === primary ? 0 : 1;
  if (raw.action_fallback !== undefined && raw.action_fallback !== fallbackFlag)
    throw badRow(
      place,
      `action_fallback is ${JSON.stringify(raw.action_fallback)}, but ${chosen} was chosen`,
      "The row names the wrong model",
    );
  const logged = raw.propensity ?? state.candidates.find((one) => one.id === chosen)!.probability;
  return {
    schema_version: version,
    decision_id:
      typeof raw.decision_id === "string"
        ? raw.decision_id
        : digestJson("rollbook.routing-row.v1", raw as Json),
    session_id: textOf(raw, "session_id", place),
    task_id: textOf(raw, "task_id", place),
    ...(typeof raw.chain_id === "string" ? { chain_id: raw.chain_id } : {}),
    agent_role: role,
    timestamp: timeOf(raw.timestamp, place),
    task_complexity_score: optionalNumber(raw, "task_complexity_score", place),
    primary_failure_count: optionalNumber(raw, "primary_failure_count", place),
    action_fallback: fallbackFlag,
    primary_model: primary,
    fallback_model: optionalText(raw, "fallback_model", place) ?? defaults.fallback_model,
    model_chosen: chosen,
    propensity: logged === null || logged === undefined ? null : toPropensity(logged, "propensity", place),
    reward: optionalNumber(raw, "reward", place),
    terminal: raw.terminal === true,
    reward_version: typeof raw.reward_version === "string" ? raw.reward_version : "unknown",
    data_source: DATA_SOURCES.includes(raw.data_source as RoutingSource)
      ? (raw.data_source as RoutingSource)
      : "unknown",
    ...(raw.cost_usd === undefined || raw.cost_usd === null
      ? {}
      : { cost_usd: toNumber(raw.cost_usd, "cost_usd", place) }),
    state,
  };
}

/** The candidates of a plain log: its primary model, and its fallback or the chosen model. A row that lists its
 *  candidates does not need these columns. */
function modelsOfRow(raw: JsonFields, chosen: string, place: LinePlace): readonly string[] {
  if (isObject(raw.state) && Array.isArray(raw.state.candidates)) return [];
  const fallback = optionalText(raw, "fallback_model", place);
  return [textOf(raw, "primary_model", place), fallback ?? chosen];
}

/** A foreign state is a map of features, including the role. Ours has candidates and the fields shown to the router. */
function stateOf(
  value: Json | undefined,
  { place, models, role }: { place: LinePlace; models: readonly string[]; role: string },
): RoutingState {
  const raw: JsonFields = isObject(value) ? value : {};
  if (Array.isArray(raw.candidates)) {
    const prompt = raw.prompt ?? "";
    if (typeof prompt !== "string") throw badState(place, "state.prompt", "a text");
    return {
      prompt,
      fields: recordOf(raw.fields, "state.fields", {
        place,
        what: "texts, numbers and booleans",
        read: toScalar,
      }),
      candidates: raw.candidates.map((one, i) =>
        candidateOf(one, { place, where: `state.candidates[${i}]` }),
      ),
      terms: termsOf(raw.terms, "state.terms", place),
    };
  }
  const fields = {
    ...(role === "" ? {} : { agent_role: role }),
    ...Object.fromEntries(
      Object.entries(raw).filter(([, each]) => ["string", "number", "boolean"].includes(typeof each)),
    ),
  } as RoutingState["fields"];
  const candidates = [...new Set(models)].map((id) => ({
    id,
    selectable: true,
    reasons: [],
    probability: null,
    features: {},
  }));
  return { prompt: "", fields, candidates, terms: {} };
}

function candidateOf(
  one: Json,
  { place, where }: { place: LinePlace; where: string },
): RoutingState["candidates"][number] {
  if (!isObject(one) || typeof one.id !== "string" || typeof one.selectable !== "boolean")
    throw badRow(place, "a candidate lacks id or selectable", "Export the dataset again");
  const { id, selectable, reasons = [], probability = null, features, outcome } = one;
  if (!Array.isArray(reasons) || !reasons.every((each) => typeof each === "string"))
    throw badState(place, `${where}.reasons`, "a list of texts");
  const number = (each: Json) => (typeof each === "number" ? each : undefined);
  return {
    ...{ id, selectable, reasons: reasons as string[] },
    probability: probability === null ? null : toNumber(probability, `${where}.probability`, place),
    features: recordOf(features, `${where}.features`, { place, what: "numbers", read: number }),
    ...(outcome === undefined ? {} : { outcome: outcomeOf(outcome, { place, where: `${where}.outcome` }) }),
  };
}

function outcomeOf(outcome: Json, { place, where }: { place: LinePlace; where: string }) {
  if (!isObject(outcome)) throw badState(place, where, "an object with a reward");
  return {
    reward: toNumber(outcome.reward, `${where}.reward`, place),
    terms: termsOf(outcome.terms, `${where}.terms`, place),
  };
}

function termsOf(value: Json | undefined, where: string, place: LinePlace): RewardTerms {
  const what = 'terms such as { "quality": { "value": 0.5, "weight": 1 } }';
  return recordOf(value, where, {
    ...{ place, what },
    read: (term) =>
      isObject(term) && typeof term.value === "number" && typeof term.weight === "number"
        ? { value: term.value, weight: term.weight }
        : undefined,
  });
}

function toScalar(value: Json): string | number | boolean | undefined {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? value
    : undefined;
}

/** Reads an object in which `read` accepts every value. Absent means empty. */
function recordOf<T>(
  value: Json | undefined,
  where: string,
  { place, what, read }: { place: LinePlace; what: string; read: (value: Json) => T | undefined },
): Record<string, T> {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw badState(place, where, `an object of ${what}`);
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => {
      const known = read(each as Json);
      if (known === undefined) throw badState(place, `${where}.${name.slice(0, 80)}`, what);
      return [name, known];
    }),
  );
}

function badState(place: LinePlace, where: string, what: string) {
  return badRow(place, `${where} is not ${what}`, "Correct the row, or export the dataset again");
}

function textOf(raw: JsonFields, name: string, place: LinePlace): string {
  const value = raw[name];
  if (typeof value === "string" && value !== "") return value;
  throw badRow(
    place,
    `${name} is ${JSON.stringify(value) ?? "missing"}`,
    "Add it as a string, or convert a file with other columns with `rollbook data import --map`",
  );
}

function optionalText(raw: JsonFields, name: string, place: LinePlace): string | undefined {
  return raw[name] === undefined || raw[name] === null ? undefined : textOf(raw, name, place);
}

function optionalNumber(raw: JsonFields, name: string, place: LinePlace): number | null {
  const value = raw[name];
  return value === undefined || value === null ? null : toNumber(value, name, place);
}

/** ISO 8601 text (without an offset: UTC) or seconds since the epoch. */
function timeOf(value: unknown, place: LinePlace): string {
  const atMs = typeof value === "number" ? value * 1000 : parseTime(String(value ?? ""))?.atMs;
  const time = new Date(atMs ?? Number.NaN);
  if (!Number.isNaN(time.getTime())) return time.toISOString();
  throw badRow(
    place,
    `timestamp ${JSON.stringify(value) ?? "is missing"} is not a time`,
    "Write it as ISO 8601",
  );
}
