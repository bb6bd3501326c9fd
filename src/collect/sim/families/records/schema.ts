/** Schemas of records: their number, label and flag fields, and records drawn from a schema. */
import type { Json, Rng } from "../../../../base/index.ts";
import { between, pick } from "../family.ts";

export interface Schema {
  readonly noun: string;
  readonly plural: string;
  readonly key: string;
  readonly numbers: readonly NumberField[];
  readonly labels: readonly LabelField[];
  readonly flags: readonly string[];
  /** A list inside each record. */
  readonly inner?: {
    readonly field: string;
    readonly noun: string;
    readonly labels: readonly LabelField[];
    readonly numbers: readonly NumberField[];
  };
}

export interface NumberField {
  readonly name: string;
  readonly low: number;
  readonly high: number;
  /** True if some records lack the field. */
  readonly mayMiss?: boolean;
}

interface LabelField {
  readonly name: string;
  readonly values: readonly string[];
}

export type JsonRecord = Readonly<Record<string, Json>>;

export function drawRecords(
  rng: Rng,
  schema: Schema,
  options: { count: number; missing: boolean },
): JsonRecord[] {
  const keys = rng.shuffle(Array.from({ length: options.count * 2 }, (_, i) => i + 1));
  return Array.from({ length: options.count }, (_, i) => ({
    [schema.key]: keys[i]!,
    ...drawFields(rng, schema, options.missing),
    ...Object.fromEntries(schema.flags.map((name) => [name, rng.below(2) === 1])),
    ...(schema.inner === undefined
      ? {}
      : {
          [schema.inner.field]: Array.from({ length: rng.below(4) }, () =>
            drawFields(rng, schema.inner!, options.missing),
          ),
        }),
  }));
}

function drawFields(
  rng: Rng,
  { labels, numbers }: Pick<Schema, "labels" | "numbers">,
  missing: boolean,
): Record<string, Json> {
  const fields: Record<string, Json> = {};
  for (const { name, values } of labels) fields[name] = pick(rng, values);
  for (const { name, low, high, mayMiss } of numbers)
    if (!(missing && mayMiss && rng.below(3) === 0)) fields[name] = between(rng, low, high);
  return fields;
}

export const SCHEMAS: readonly Schema[] = [
  {
    noun: "order",
    plural: "orders",
    key: "id",
    numbers: [
      { name: "amount", low: 5, high: 90 },
      { name: "discount", low: 1, high: 9, mayMiss: true },
    ],
    labels: [
      { name: "customer", values: ["Ada", "Bo", "Cleo", "Dev", "Eva"] },
      { name: "city", values: ["Oslo", "Lima", "Pune"] },
      { name: "status", values: ["open", "paid", "sent"] },
    ],
    flags: ["rush"],
    inner: {
      field: "items",
      noun: "item",
      labels: [{ name: "sku", values: ["pen", "ink", "pad", "cap"] }],
      numbers: [
        { name: "count", low: 1, high: 9 },
        { name: "price", low: 2, high: 30, mayMiss: true },
      ],
    },
  },
  {
    noun: "employee",
    plural: "employees",
    key: "badge",
    numbers: [
      { name: "salary", low: 20, high: 99 },
      { name: "bonus", low: 1, high: 12, mayMiss: true },
    ],
    labels: [
      { name: "name", values: ["Finn", "Gita", "Hugo", "Iris", "Jan"] },
      { name: "team", values: ["data", "web", "ops"] },
      { name: "grade", values: ["junior", "senior", "lead"] },
    ],
    flags: ["remote"],
    inner: {
      field: "projects",
      noun: "project",
      labels: [{ name: "code", values: ["atlas", "boreas", "ceres"] }],
      numbers: [
        { name: "hours", low: 1, high: 40 },
        { name: "rate", low: 5, high: 25, mayMiss: true },
      ],
    },
  },
  {
    noun: "book",
    plural: "books",
    key: "isbn",
    numbers: [
      { name: "pages", low: 60, high: 700 },
      { name: "loans", low: 1, high: 40, mayMiss: true },
    ],
    labels: [
      { name: "author", values: ["Achebe", "Borges", "Calvino", "Dahl"] },
      { name: "genre", values: ["novel", "essay", "poetry"] },
      { name: "language", values: ["en", "fr", "es"] },
    ],
    flags: ["available"],
    inner: {
      field: "copies",
      noun: "copy",
      labels: [{ name: "branch", values: ["north", "south", "harbour"] }],
      numbers: [
        { name: "shelf", low: 1, high: 20 },
        { name: "wear", low: 1, high: 9, mayMiss: true },
      ],
    },
  },
  {
    noun: "sensor",
    plural: "sensors",
    key: "serial",
    numbers: [
      { name: "value", low: -20, high: 60 },
      { name: "battery", low: 1, high: 100, mayMiss: true },
    ],
    labels: [
      { name: "room", values: ["attic", "cellar", "hall", "lab"] },
      { name: "kind", values: ["heat", "light", "sound"] },
      { name: "maker", values: ["Acme", "Volt", "Zeta"] },
    ],
    flags: ["active"],
    inner: {
      field: "alarms",
      noun: "alarm",
      labels: [{ name: "cause", values: ["high", "low", "lost"] }],
      numbers: [
        { name: "minutes", low: 1, high: 90 },
        { name: "level", low: 1, high: 5, mayMiss: true },
      ],
    },
  },
  {
    noun: "ticket",
    plural: "tickets",
    key: "code",
    numbers: [
      { name: "minutes", low: 3, high: 240 },
      { name: "rating", low: 1, high: 5, mayMiss: true },
    ],
    labels: [
      { name: "agent", values: ["Kim", "Lou", "Mia", "Ned"] },
      { name: "queue", values: ["billing", "login", "other"] },
      { name: "priority", values: ["low", "high", "urgent"] },
    ],
    flags: ["reopened"],
    inner: {
      field: "steps",
      noun: "step",
      labels: [{ name: "action", values: ["call", "mail", "visit"] }],
      numbers: [
        { name: "effort", low: 1, high: 30 },
        { name: "cost", low: 1, high: 50, mayMiss: true },
      ],
    },
  },
];

export type Records = readonly JsonRecord[];
