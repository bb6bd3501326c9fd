/** Operations that turn records into fewer, extended or reordered records. They use the fields of a schema. */

import { between, pick } from "../family.ts";
import { defineOp, type Op } from "../pipeline/index.ts";
import type { JsonRecord, NumberField, Records, Schema } from "./schema.ts";

export function recordOps(schema: Schema): Op[] {
  return [
    whereNumber(schema),
    whereLabel(schema),
    ...schema.flags.map((flag) => whereFlag(schema, flag)),
    derive(schema),
    sortBy(schema),
    limit(schema),
  ];
}

/** A missing field counts as 0, unless a step defines another default. */
export function numberOf(record: JsonRecord, field: string, otherwise = 0): number {
  return (record[field] as number | undefined) ?? otherwise;
}

const SAID = { ">": "more than", ">=": "at least", "<": "less than", "<=": "at most" } as const;
type How = keyof typeof SAID;
const SLIP: Readonly<Record<How, How>> = { ">": ">=", ">=": ">", "<": "<=", "<=": "<" };

export function whereNumber({ numbers, plural }: Schema): Op {
  return defineOp({
    name: "where-number",
    from: "records",
    to: "records",
    level: 2,
    draw: (rng) => {
      const field = pick(rng, numbers);
      return {
        field: field.name,
        how: pick(rng, Object.keys(SAID)),
        k: middling(field, rng.below(3)),
        missing: false,
      };
    },
    apply: (v: Records, { field, how, k, missing }) =>
      v.filter((r) => (missing || r[field] !== undefined) && compare(numberOf(r, field), how as How, k)),
    javascript: ({ field, how, k, missing }) =>
      `@.filter((r) => ${missing ? `(r.${field} ?? 0)` : `r.${field}`} ${how} ${k})`,
    say: ({ field, how, k }) => [
      `keep the ${plural} whose ${field} is ${SAID[how as How]} ${k}; where there is no ${field}, the record does not qualify`,
      `drop every record unless its ${field} is ${SAID[how as How]} ${k} (a record without ${field} is dropped too)`,
    ],
    slips: ({ how, k }) => ({
      "takes a missing field for zero": { missing: true },
      "treats the bound itself wrongly": { how: SLIP[how as How] },
      "compares the other way round": { how: how.startsWith(">") ? "<" : ">" },
      "is off by one in the bound": { k: k + 1 },
    }),
  });
}

function middling({ low, high }: NumberField, third: number): number {
  return low + Math.floor(((high - low) * (third + 1)) / 4);
}

function compare(a: number, how: How, b: number): boolean {
  return how === ">" ? a > b : how === ">=" ? a >= b : how === "<" ? a < b : a <= b;
}

export function whereLabel({ labels, plural }: Schema): Op {
  return defineOp({
    name: "where-label",
    from: "records",
    to: "records",
    level: 1,
    draw: (rng) => {
      const { name, values } = pick(rng, labels);
      const [value, other] = rng.shuffle([...values]);
      return { field: name, value: value!, other: other!, not: rng.below(2) === 1, both: false };
    },
    apply: (v: Records, { field, value, other, not, both }) =>
      v.filter((r) => (r[field] === value || (both && r[field] === other)) !== not),
    javascript: ({ field, value, other, not, both }) =>
      both
        ? `@.filter((r) => ${not ? "!" : ""}["${value}", "${other}"].includes(r.${field}))`
        : `@.filter((r) => r.${field} ${not ? "!==" : "==="} "${value}")`,
    say: ({ field, value, not }) =>
      not
        ? [`leave out ${plural} whose ${field} is "${value}"`, `ignore everything with ${field} "${value}"`]
        : [
            `consider only ${plural} whose ${field} is "${value}"`,
            `keep just those with ${field} "${value}"`,
          ],
    slips: ({ not }) => ({
      "keeps what it should leave out": { not: !not },
      "takes another label along": { both: true },
    }),
  });
}

function whereFlag({ plural }: Schema, flag: string): Op {
  return defineOp({
    name: `where-${flag}`,
    from: "records",
    to: "records",
    level: 1,
    draw: (rng) => ({ want: rng.below(2) === 1, all: false }),
    apply: (v: Records, { want, all }) => v.filter((r) => all || r[flag] === want),
    javascript: ({ want, all }) =>
      all ? `@.filter((r) => r.${flag} !== undefined)` : `@.filter((r) => ${want ? "" : "!"}r.${flag})`,
    say: ({ want }) => [
      `keep the ${plural} where ${flag} is ${want}`,
      `skip ${plural} with ${flag} set to ${!want}`,
    ],
    slips: ({ want }) => ({
      "keeps the opposite": { want: !want },
      "tests whether the flag is there, not what it says": { all: true },
    }),
  });
}

function derive({ numbers, noun }: Schema): Op {
  const [a, b] = numbers as readonly [NumberField, NumberField];
  return defineOp({
    name: "derive",
    from: "records",
    to: "records",
    level: 2,
    draw: (rng) => ({ how: pick(rng, ["*", "+", "-"]), otherwise: between(rng, 1, 5) }),
    apply: (v: Records, { how, otherwise }) =>
      v.map((r) => {
        const [x, y] = [numberOf(r, a.name), numberOf(r, b.name, otherwise)];
        return { ...r, [a.name]: how === "*" ? x * y : how === "+" ? x + y : x - y };
      }),
    javascript: ({ how, otherwise }) =>
      `@.map((r) => ({ ...r, ${a.name}: r.${a.name} ${how} (r.${b.name} ?? ${otherwise}) }))`,
    say: ({ how, otherwise }) => {
      const what = {
        "*": `${a.name} times ${b.name}`,
        "+": `the sum of ${a.name} and ${b.name}`,
        "-": `${a.name} minus ${b.name}`,
      }[how as "*"];
      return [
        `replace each ${noun}'s ${a.name} by ${what}, taking ${otherwise} for a missing ${b.name}`,
        `from now on ${a.name} means ${what} (${b.name} counts as ${otherwise} when absent)`,
      ];
    },
    slips: ({ how }) => ({
      "takes zero for the missing field": { otherwise: 0 },
      "uses the wrong operator": { how: how === "+" ? "-" : "+" },
    }),
  });
}

function sortBy({ numbers, key, plural }: Schema): Op {
  const field = numbers[0]!.name;
  return defineOp({
    name: "sort-by",
    from: "records",
    to: "records",
    level: 2,
    draw: (rng) => ({ down: rng.below(2) === 1, tieDown: rng.below(2) === 1, ties: true }),
    apply: (v: Records, { down, tieDown, ties }) =>
      v.toSorted((x, y) => {
        const first = numberOf(x, field) - numberOf(y, field);
        const tie = ties ? numberOf(x, key) - numberOf(y, key) : 0;
        return (down ? 0 - first : first) || (tieDown ? 0 - tie : tie);
      }),
    javascript: ({ down, tieDown, ties }) => {
      const part = (name: string, desc: boolean) =>
        desc ? `b.${name} - a.${name}` : `a.${name} - b.${name}`;
      return `[...@].sort((a, b) => ${part(field, down)}${ties ? ` || ${part(key, tieDown)}` : ""})`;
    },
    say: ({ down, tieDown }) => [
      `sort by ${field}, ${down ? "highest" : "lowest"} first; equal ones by ${key}, ${tieDown ? "highest" : "lowest"} first`,
      `order the ${plural} by ${down ? "descending" : "ascending"} ${field}, breaking ties by ${tieDown ? "descending" : "ascending"} ${key}`,
    ],
    slips: ({ down, tieDown }) => ({
      "sorts in the wrong direction": { down: !down },
      "breaks ties in the wrong direction": { tieDown: !tieDown },
      "does not break ties": { ties: false },
    }),
  });
}

function limit({ plural }: Schema): Op {
  return defineOp({
    name: "limit",
    from: "records",
    to: "records",
    level: 1,
    draw: (rng) => ({ k: between(rng, 2, 4), skip: 0 }),
    apply: (v: Records, { k, skip }) => v.slice(skip, skip + k),
    javascript: ({ k, skip }) => `@.slice(${skip}, ${skip + k})`,
    say: ({ k }) => [
      `take the first ${k} of what is there (or fewer, if there are fewer)`,
      `keep no more than the first ${k} ${plural}`,
    ],
    slips: ({ k }) => ({
      "takes one too many": { k: k + 1 },
      "skips the first": { skip: 1 },
    }),
  });
}

/** Makes one record per entry of the inner list, with the key of the outer record. Changes the schema. */
export function flatten(schema: Schema): { op: Op; after: Schema } {
  const { inner, key, plural, labels } = schema;
  const { field, noun, ...fields } = inner!;
  const kept = labels[1]!;
  const op = defineOp({
    name: "flatten",
    from: "records",
    to: "records",
    level: 2,
    draw: () => ({ first: false }),
    apply: (v: Records, { first }) =>
      v.flatMap((r) =>
        (r[field] as unknown as Records).slice(0, first ? 1 : undefined).map((each) => ({
          ...each,
          [key]: r[key]!,
          [kept.name]: r[kept.name]!,
        })),
      ),
    javascript: ({ first }) =>
      `@.flatMap((r) => r.${field}${first ? ".slice(0, 1)" : ""}.map((each) => ({ ...each, ${key}: r.${key}, ${kept.name}: r.${kept.name} })))`,
    say: () => [
      `make one record of every ${noun} in ${field} of all ${plural}, with the ${key} and ${kept.name} of where it came from added`,
      `unfold ${field}: each ${noun} becomes a record of its own that also carries ${key} and ${kept.name} of its ${schema.noun} (those without any ${noun} vanish)`,
    ],
    slips: () => ({ "takes only the first inner entry": { first: true } }),
  });
  const after: Schema = {
    noun,
    plural: field,
    key,
    flags: [],
    numbers: fields.numbers,
    labels: [...fields.labels, kept],
  };
  return { op, after };
}
