/** The default features of models that keep a matrix: few word buckets, and the fields that occur.
 *  In: rows. Out: fields of a feature spec. Learners take every field; the judge's small reward models take a few. */
import { DEFAULT_FEATURES, type FeatureSpec } from "../../policy/index.ts";
import type { DecisionRow } from "./decision-row.ts";

/** Linear bandits keep a dense matrix: few word buckets, and the fields. */
export function denseSpec(fields: FeatureSpec["fields"]): FeatureSpec {
  return { ...DEFAULT_FEATURES, wordBuckets: 16, fields };
}

/** A reward model of the judge takes at most this many fields; a spec can name any number. */
const FEW_FIELDS = 16;
const FEW_BUCKETS = 16;
/** Places that all categories of a dense model share. */
const DENSE_PLACES = 384;

/** The first fields by name: numbers as numbers, everything else as a category of 16 buckets. */
export function fieldsOf(rows: readonly DecisionRow[]): FeatureSpec["fields"] {
  const found = new FieldTally();
  for (const row of rows) found.add(row);
  return found
    .sorted()
    .slice(0, FEW_FIELDS)
    .map(({ name, values }) =>
      values === undefined ? { name, kind: "number" } : { name, kind: "category", buckets: FEW_BUCKETS },
    );
}

/** Every field that occurs. A category has about four buckets per value, fewer if there are many fields. */
export function everyFieldOf(rows: readonly DecisionRow[]): FeatureSpec["fields"] {
  const found = new FieldTally();
  for (const row of rows) found.add(row);
  return found.dense();
}

export async function collectFields(rows: AsyncIterable<DecisionRow>): Promise<FeatureSpec["fields"]> {
  const found = new FieldTally();
  for await (const row of rows) found.add(row);
  return found.dense();
}

interface FoundField {
  readonly name: string;
  /** Values of a category; undefined for a number. */
  readonly values: ReadonlySet<string> | undefined;
}

class FieldTally {
  readonly #values = new Map<string, Set<string>>();
  readonly #categories = new Set<string>();

  add({ context }: DecisionRow): void {
    for (const [name, value] of Object.entries(context.fields)) {
      if (typeof value === "string") this.#categories.add(name);
      const seen = this.#values.get(name) ?? new Set();
      this.#values.set(name, seen);
      if (seen.size < DENSE_PLACES) seen.add(String(value));
    }
  }

  sorted(): FoundField[] {
    return [...this.#values]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, values]) => ({ name, values: this.#categories.has(name) ? values : undefined }));
  }

  dense(): FeatureSpec["fields"] {
    const fields = this.sorted();
    const categories = fields.filter(({ values }) => values !== undefined).length;
    const most = Math.max(2, powerBelow(DENSE_PLACES / Math.max(1, categories)));
    return fields.map(({ name, values }) =>
      values === undefined
        ? { name, kind: "number" }
        : {
            name,
            kind: "category",
            buckets: Math.min(most, Math.max(FEW_BUCKETS, 2 * powerBelow(4 * values.size))),
          },
    );
  }
}

function powerBelow(limit: number): number {
  let power = 1;
  while (2 * power <= limit) power *= 2;
  return power;
}
