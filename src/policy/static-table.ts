/** The static table: rules that a person writes in YAML. The router falls back to it below the confidence floor, and it
 *  is the baseline that a learned policy has to beat. In: YAML. Out: a table.
 *  A typo is refused at load, never ignored. */
import * as z from "zod";
import { type Digest, digestJson, type Json, nearestName, RollbookError, withRemedy } from "../base/index.ts";
import { configProblem } from "../contract/index.ts";
import type { DecisionCandidate, DecisionContext } from "./decision.ts";
import { readYaml } from "./read-yaml.ts";
import { REQUEST_FIELDS } from "./request-fields.ts";

const range = z
  .strictObject({ min: z.optional(z.number()), max: z.optional(z.number()) })
  .refine((each) => each.min !== undefined || each.max !== undefined, "names neither min nor max")
  .refine(({ min, max }) => !((min ?? -Infinity) > (max ?? Infinity)), "is empty: min is above max");
const scalar = z.union([z.string(), z.number(), z.boolean()]);

/** All triggers of a rule must hold. */
const triggers = z
  .strictObject({
    promptChars: z.optional(range),
    /** The prompt contains any of these texts; case is ignored. */
    contains: z.optional(z.array(z.string().min(1)).min(1)),
    /** A field equals a value, is one of several, or lies in a range. */
    fields: z.optional(z.record(z.string(), z.union([scalar, z.array(scalar).min(1), range]))),
  })
  .refine(
    (when) => Object.keys(when).length > 0,
    "has no trigger: use `default` for a rule that always holds",
  );

/** Candidates in order of preference. The table takes the first selectable one. */
const preference = z.union([
  z
    .string()
    .min(1)
    .transform((one) => [one]),
  z.array(z.string().min(1)).min(1),
]);

const schema = z.strictObject({
  schema: z.literal("rollbook.static-table.v1"),
  rules: z.array(z.strictObject({ when: triggers, choose: preference })).default([]),
  default: preference,
});
type Triggers = z.output<typeof triggers>;

export interface StaticTable {
  readonly digest: Digest;
  /** The parsed YAML with defaults filled in. Parsing it again gives the same table. */
  readonly source: Json;
  /** All candidates that the table names. */
  readonly names: ReadonlySet<string>;
  /** Index of the table's choice among the candidates; -1 if no named candidate is selectable. */
  choose(context: DecisionContext, candidates: readonly DecisionCandidate[]): number;
  /** The rule that makes this choice; undefined if no named candidate is selectable. */
  ruleFor(context: DecisionContext, candidates: readonly DecisionCandidate[]): TableRule | undefined;
}

/** A rule of a static table. */
export interface TableRule {
  /** Its place among the rules, from 1; undefined for the default. */
  readonly number: number | undefined;
  readonly when: Json | undefined;
  /** Candidates in order of preference. */
  readonly choose: readonly string[];
}

/** `known`: the existing candidates. A rule that names another candidate is a typo and is refused. */
export function parseStaticTable(text: string, where: string, known?: Iterable<string>): StaticTable {
  const value = readYaml(text, (what) => bad(where, what));
  const result = schema.safeParse(value);
  if (!result.success) throw bad(where, configProblem(schema, result.error.issues, value));
  const table = result.data;
  const names = new Set([...table.rules.flatMap((rule) => rule.choose), ...table.default]);
  if (known !== undefined) requireKnownNames({ names }, where, known);
  return {
    digest: digestJson(table.schema, table),
    source: table as Json,
    names,
    choose(context, candidates) {
      for (const rule of table.rules) {
        if (!holds(rule.when, context)) continue;
        const index = firstSelectable(rule.choose, candidates);
        if (index >= 0) return index;
      }
      return firstSelectable(table.default, candidates);
    },
    ruleFor(context, candidates) {
      const all = [...table.rules, { when: undefined, choose: table.default }];
      const found = all.findIndex(
        ({ when, choose }) =>
          (when === undefined || holds(when, context)) && firstSelectable(choose, candidates) >= 0,
      );
      if (found < 0) return undefined;
      const { when, choose } = all[found]!;
      const number = when === undefined ? undefined : found + 1;
      return { number, when: when as Json | undefined, choose };
    },
  };
}

/** Refuses a rule on a field with nearly the name of a field of calls, and its kind of value: it would never hold.
 *  Other names are fields of /v1/route. */
export function requireFieldsOfCalls({ source }: Pick<StaticTable, "source">, where: string): void {
  const { rules } = source as z.output<typeof schema>;
  for (const [name, wanted] of rules.flatMap(({ when }) => Object.entries(when.fields ?? {}))) {
    if ((REQUEST_FIELDS as readonly string[]).includes(name)) continue;
    const near = nearestName(name, REQUEST_FIELDS);
    const [value] = Array.isArray(wanted) ? wanted : [wanted];
    const kind = typeof value === "object" ? "number" : typeof value;
    if (near !== undefined && kind === (near === "stream" ? "boolean" : "number"))
      throw bad(where, `a rule reads the field ${name}, which no call has. Did you mean ${near}?`);
  }
}

/** Refuses a table that chooses a candidate which does not exist. */
export function requireKnownNames(
  { names }: Pick<StaticTable, "names">,
  where: string,
  known: Iterable<string>,
): void {
  const allowed = [...known];
  const unknown = [...names].find((name) => !allowed.includes(name));
  if (unknown === undefined) return;
  const near = nearestName(unknown, allowed);
  throw bad(
    where,
    `it chooses ${JSON.stringify(unknown)}, which is not a candidate. ${near === undefined ? "" : `Did you mean ${near}? `}Known: ${allowed.join(", ")}`,
  );
}

function holds(when: Triggers, { prompt, fields }: DecisionContext): boolean {
  if (when.promptChars !== undefined && !inRange(when.promptChars, prompt.length)) return false;
  if (when.contains !== undefined) {
    const lower = prompt.toLowerCase();
    if (!when.contains.some((word) => lower.includes(word.toLowerCase()))) return false;
  }
  return Object.entries(when.fields ?? {}).every(([name, wanted]) => {
    const value = fields[name];
    if (value === undefined) return false;
    if (Array.isArray(wanted)) return wanted.includes(value);
    return typeof wanted === "object"
      ? typeof value === "number" && inRange(wanted, value)
      : value === wanted;
  });
}

function inRange({ min, max }: z.output<typeof range>, value: number): boolean {
  return value >= (min ?? -Infinity) && value <= (max ?? Infinity);
}

function firstSelectable(order: readonly string[], candidates: readonly DecisionCandidate[]): number {
  // A loop, because this runs for every routed call: `findIndex` takes several times as long on a frozen list.
  for (const name of order)
    for (let i = 0; i < candidates.length; i++)
      if (candidates[i]!.id === name && candidates[i]!.selectable) return i;
  return -1;
}

function bad(where: string, what: string): RollbookError {
  return new RollbookError(
    "bad-table",
    { where },
    `${where}: ${withRemedy(what, "Correct the table; docs/reference/serve.md lists what it may hold.")}`,
  );
}
