/** The default features: the fields that occur and, for models that keep a matrix, few word buckets. */
import { DEFAULT_FEATURES, type FeatureSpec } from "../../policy/index.ts";
import type { DecisionRow } from "./decision-row.ts";

/** Linear bandits keep a dense matrix: few word buckets, and the fields. */
export function denseSpec(fields: FeatureSpec["fields"]): FeatureSpec {
  return { ...DEFAULT_FEATURES, wordBuckets: 16, fields };
}

/** The default takes at most this many fields; a spec can name any number. */
const MOST_FIELDS = 16;

type FieldKinds = Map<string, "number" | "category">;

/** The fields that occur, by name: numbers as numbers, everything else as a category of 16 buckets. */
export function fieldsOf(rows: readonly DecisionRow[]): FeatureSpec["fields"] {
  const kinds: FieldKinds = new Map();
  for (const row of rows) noteFields(kinds, row);
  return specFields(kinds);
}

export async function collectFields(rows: AsyncIterable<DecisionRow>): Promise<FeatureSpec["fields"]> {
  const kinds: FieldKinds = new Map();
  for await (const row of rows) noteFields(kinds, row);
  return specFields(kinds);
}

function noteFields(kinds: FieldKinds, { context }: DecisionRow): void {
  for (const [name, value] of Object.entries(context.fields)) {
    if (typeof value === "string") kinds.set(name, "category");
    else if (!kinds.has(name)) kinds.set(name, "number");
  }
}

function specFields(kinds: FieldKinds): FeatureSpec["fields"] {
  return [...kinds]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, MOST_FIELDS)
    .map(([name, kind]) => (kind === "number" ? { name, kind } : { name, kind, buckets: 16 }));
}
