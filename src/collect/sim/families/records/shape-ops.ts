/** Operations that end a pipeline over records with the requested JSON. */

import type { Json } from "../../../../base/index.ts";
import { pick } from "../family.ts";
import { defineOp, type Op } from "../pipeline/index.ts";
import {
  countBy,
  figureOf,
  figureSource,
  grouped,
  groupHelper,
  indexByKey,
  namesBy,
  pivot,
  sumBy,
} from "./group-ops.ts";
import { numberOf } from "./record-ops.ts";
import type { Records, Schema } from "./schema.ts";

export function shapeOps(schema: Schema): Op[] {
  return [
    select(schema),
    countBy(schema),
    sumBy(schema),
    indexByKey(schema),
    pivot(schema),
    namesBy(schema),
    summary(schema),
    leader(schema),
  ];
}

function select({ key, labels, numbers }: Schema): Op {
  const number = numbers[0]!.name;
  return defineOp({
    name: "select",
    from: "records",
    to: "result",
    level: 1,
    draw: (rng) => ({
      label: pick(rng, labels).name,
      as: pick(rng, ["who", "what", "group", "kind"]),
      whole: false,
      with: number,
    }),
    apply: (v: Records, { label, as, whole, with: shown }) =>
      v.map(
        (r) =>
          (whole
            ? { ...r, [as]: r[label]! }
            : { [key]: r[key]!, [as]: r[label]!, [shown]: r[shown]! }) as Json,
      ),
    javascript: ({ label, as, whole, with: shown }) =>
      `@.map((r) => (${whole ? `{ ...r, ${as}: r.${label} }` : `{ ${key}: r.${key}, ${as}: r.${label}, ${shown}: r.${shown} }`}))`,
    say: ({ label, as, with: shown }) => [
      `return a list of objects with exactly the fields ${key}, ${shown} and ${as}, where ${as} is the record's ${label}`,
      `return for each an object {${key}, ${as}, ${shown}}: ${as} is the new name of ${label}, and nothing else is kept`,
    ],
    slips: ({ label }) => ({
      "keeps all other fields too": { whole: true },
      "forgets to rename": { as: label },
      "gives the wrong field": { label: labels.find((each) => each.name !== label)!.name },
    }),
  });
}

export function summary({ numbers, plural }: Schema): Op {
  return defineOp({
    name: "summary",
    from: "records",
    to: "result",
    level: 2,
    draw: (rng) => ({ field: pick(rng, numbers).name, empty: true, present: rng.below(2) === 1 }),
    apply: (v: Records, { field, empty, present }) => {
      const values = v.filter((r) => !present || r[field] !== undefined).map((r) => numberOf(r, field));
      return {
        count: v.length,
        total: values.reduce((a, b) => a + b, 0),
        smallest: values.length === 0 ? (empty ? null : 0) : Math.min(...values),
      };
    },
    javascript: ({ empty, present }) => `summarise(@, ${present}, ${empty ? "null" : "0"})`,
    helper: ({ field }) => ({
      javascript: `function summarise(records, present, empty) {
  const values = records.filter((r) => !present || r.${field} !== undefined).map((r) => r.${field} ?? 0);
  return {
    count: records.length,
    total: values.reduce((a, b) => a + b, 0),
    smallest: values.length === 0 ? empty : Math.min(...values),
  };
}`,
    }),
    say: ({ field, present }) => [
      `return {count, total, smallest}: how many ${plural}, the sum of ${field} and the smallest ${field} (null if there is none); ${present ? `records without ${field} count, but add nothing to the other two` : `a missing ${field} is 0`}`,
    ],
    slips: ({ present, field }) => ({
      "gives zero instead of null": { empty: false },
      "treats a missing field wrongly": { present: !present },
      "uses the wrong number": { field: numbers.find((each) => each.name !== field)!.name },
    }),
  });
}

export function leader({ labels, numbers }: Schema): Op {
  return defineOp({
    name: "leader",
    from: "records",
    to: "result",
    level: 3,
    draw: (rng) => ({
      label: pick(rng, labels).name,
      field: pick(rng, numbers).name,
      tie: "alphabet",
      most: rng.below(2) === 1,
    }),
    apply: (v: Records, { label, field, tie, most }) => {
      const totals = Object.entries(
        grouped(v, label, (group) => figureOf(group, field, "total")) as Record<string, number>,
      );
      const sorted = totals.toSorted(
        ([a, x], [b, y]) =>
          (most ? y - x : x - y) || (tie === "alphabet" ? byText(a, b) : tie === "none" ? 0 : byText(b, a)),
      );
      return sorted[0]?.[0] ?? null;
    },
    javascript: ({ label, field, most, tie }) =>
      `leading(groupsOf(@, "${label}", (group) => ${figureSource("group", field, "total")}), ${most}, "${tie}")`,
    helper: () => ({
      javascript: `${groupHelper().javascript}

function leading(totals, most, tie) {
  const text = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const entries = Object.entries(totals).sort(
    ([a, x], [b, y]) => (most ? y - x : x - y) || (tie === "alphabet" ? text(a, b) : tie === "none" ? 0 : text(b, a)),
  );
  return entries.length === 0 ? null : entries[0][0];
}`,
    }),
    say: ({ label, field, most }) => [
      `return the ${label} whose ${field} adds up to the ${most ? "most" : "least"} (missing counts as 0; in a tie the alphabetically first; null if there are no records)`,
      `find the ${label} with the ${most ? "largest" : "smallest"} total ${field}, where absent is 0. Equal totals: alphabetical order decides. Nothing at all: null`,
    ],
    slips: ({ most, field }) => ({
      "breaks ties backwards": { tie: "last" },
      "breaks ties by what comes first": { tie: "none" },
      "looks for the opposite": { most: !most },
      "uses the wrong number": { field: numbers.find((each) => each.name !== field)!.name },
    }),
  });
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
