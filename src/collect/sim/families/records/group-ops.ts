/** Operations that end a pipeline over records with an object keyed by group. */

import type { Json } from "../../../../base/index.ts";
import { pick } from "../family.ts";
import { defineOp, type Op } from "../pipeline/index.ts";
import { numberOf } from "./record-ops.ts";
import type { JsonRecord, Records, Schema } from "./schema.ts";

export function countBy({ labels, plural }: Schema): Op {
  return defineOp({
    name: "count-by",
    from: "records",
    to: "result",
    level: 1,
    draw: (rng) => ({ label: pick(rng, labels).name, from: 0 }),
    apply: (v: Records, { label, from }) => grouped(v, label, (group) => group.length + from),
    javascript: ({ label, from }) =>
      `groupsOf(@, "${label}", (group) => group.length${from === 0 ? "" : ` - ${0 - from}`})`,
    helper: groupHelper,
    say: ({ label }) => [
      `return an object that says for each ${label} how many ${plural} there are`,
      `count per ${label} and return an object from ${label} to count`,
    ],
    slips: ({ label }) => ({
      "starts counting at zero": { from: -1 },
      "groups by the wrong field": { label: labels.find((each) => each.name !== label)!.name },
    }),
  });
}

export function sumBy({ labels, numbers }: Schema): Op {
  return defineOp({
    name: "sum-by",
    from: "records",
    to: "result",
    level: 2,
    draw: (rng) => ({
      label: pick(rng, labels).name,
      field: pick(rng, numbers).name,
      how: pick(rng, ["total", "largest"]),
    }),
    apply: (v: Records, { label, field, how }) => grouped(v, label, (group) => figureOf(group, field, how)),
    javascript: ({ label, field, how }) =>
      `groupsOf(@, "${label}", (group) => ${figureSource("group", field, how)})`,
    helper: groupHelper,
    say: ({ label, field, how }) => [
      `return an object from each ${label} to the ${how} ${field} in it (a missing ${field} counts as 0)`,
      `group by ${label} and return for every group the ${how === "total" ? "sum of" : "largest"} ${field}, where absent means 0`,
    ],
    slips: ({ label, field, how }) => ({
      "computes the wrong figure": { how: how === "total" ? "largest" : "total" },
      "uses only the first of a group": { how: "first" },
      "groups by the wrong field": { label: labels.find((each) => each.name !== label)!.name },
      "uses the wrong number": { field: numbers.find((each) => each.name !== field)!.name },
    }),
  });
}

export function indexByKey({ key, labels, plural }: Schema): Op {
  return defineOp({
    name: "index",
    from: "records",
    to: "result",
    level: 2,
    draw: (rng) => ({ by: pick(rng, labels).name, keep: pick(rng, ["first", "last"]) }),
    apply: (v: Records, { by, keep }) =>
      grouped(v, by, (group) =>
        keep === "all" ? group.map((r) => r[key]!) : group.at(keep === "first" ? 0 : -1)![key]!,
      ),
    javascript: ({ by, keep }) =>
      `groupsOf(@, "${by}", (group) => ${keep === "all" ? `group.map((r) => r.${key})` : `group[${keep === "first" ? "0" : "group.length - 1"}].${key}`})`,
    helper: groupHelper,
    say: ({ by, keep }) => [
      `return an object from ${by} to the ${key} of the ${keep} of the ${plural} with that ${by}`,
      `index by ${by}: each value is a ${key}, that of the ${keep} record if there are several`,
    ],
    slips: ({ keep, by }) => ({
      "keeps the wrong one of several": { keep: keep === "first" ? "last" : "first" },
      "keeps a list of all": { keep: "all" },
      "indexes by the wrong field": { by: labels.find((each) => each.name !== by)!.name },
    }),
  });
}

export function pivot({ labels }: Schema): Op {
  return defineOp({
    name: "pivot",
    from: "records",
    to: "result",
    level: 3,
    draw: (rng) => {
      const [outer, inside] = rng.shuffle(labels.map((each) => each.name));
      return { outer: outer!, inside: inside!, count: true };
    },
    apply: (v: Records, { outer, inside, count }) =>
      grouped(v, outer, (group) => grouped(group, inside, (part) => (count ? part.length : 1))),
    javascript: ({ outer, inside, count }) =>
      `groupsOf(@, "${outer}", (group) => groupsOf(group, "${inside}", (part) => ${count ? "part.length" : "1"}))`,
    helper: groupHelper,
    say: ({ outer, inside }) => [
      `return a table of counts: an object from ${outer} to an object from ${inside} to how many records have both (combinations that do not occur are left out)`,
      `count by ${outer} and, inside that, by ${inside}; return the nested object without zero entries`,
    ],
    slips: ({ outer, inside }) => ({
      "nests the wrong way round": { outer: inside, inside: outer },
      "marks instead of counting": { count: false },
    }),
  });
}

export function namesBy({ labels }: Schema): Op {
  return defineOp({
    name: "names-by",
    from: "records",
    to: "result",
    level: 3,
    draw: (rng) => {
      const [by, name] = rng.shuffle(labels.map((each) => each.name));
      return { by: by!, name: name!, once: true, sorted: true };
    },
    apply: (v: Records, { by, name, once, sorted }) =>
      grouped(v, by, (group) => {
        const names = group.map((r) => r[name] as string);
        const kept = once ? [...new Set(names)] : names;
        return sorted ? kept.toSorted() : kept;
      }),
    javascript: ({ by, name, once, sorted }) => {
      const names = `group.map((r) => r.${name})`;
      return `groupsOf(@, "${by}", (group) => ${once ? `[...new Set(${names})]` : names}${sorted ? ".sort()" : ""})`;
    },
    helper: groupHelper,
    say: ({ by, name }) => [
      `return an object from each ${by} to the list of its different ${name} values in alphabetical order`,
      `list, for every ${by}, which ${name} values occur with it: each once, sorted`,
    ],
    slips: ({ once, sorted }) => ({
      "lists duplicates": { once: !once },
      "does not sort": { sorted: !sorted },
    }),
  });
}

export function figureOf(group: Records, field: string, how: string): number {
  const values = group.map((r) => numberOf(r, field));
  return how === "total"
    ? values.reduce((a, b) => a + b, 0)
    : how === "largest"
      ? Math.max(...values)
      : values[0]!;
}

export function figureSource(group: string, field: string, how: string): string {
  if (how === "total") return `${group}.reduce((sum, r) => sum + (r.${field} ?? 0), 0)`;
  return how === "largest"
    ? `Math.max(...${group}.map((r) => r.${field} ?? 0))`
    : `${group}[0].${field} ?? 0`;
}

export function grouped(records: Records, field: string, of: (group: Records) => Json): Json {
  const groups = new Map<string, JsonRecord[]>();
  for (const record of records) {
    const name = record[field] as string;
    groups.set(name, [...(groups.get(name) ?? []), record]);
  }
  return Object.fromEntries([...groups].map(([name, group]) => [name, of(group)]));
}

export function groupHelper() {
  return {
    javascript: `function groupsOf(records, field, of) {
  const groups = new Map();
  for (const record of records) {
    const name = record[field];
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(record);
  }
  return Object.fromEntries([...groups].map(([name, group]) => [name, of(group)]));
}`,
  };
}
