/** Operations that select or reorder the numbers of a list. */

import { between, pick } from "../family.ts";
import type { Numbers } from "./op.ts";
import { defineOp, type Op } from "./op.ts";

const dedupe = defineOp({
  name: "distinct",
  from: "numbers",
  to: "numbers",
  level: 2,
  draw: (rng) => ({ keep: pick(rng, ["first", "last"]) }),
  apply: (v: Numbers, { keep }) =>
    v.filter((x, i) =>
      keep === "first"
        ? v.indexOf(x) === i
        : keep === "last"
          ? v.lastIndexOf(x) === i
          : i === 0 || v[i - 1] !== x,
    ),
  javascript: ({ keep }) =>
    keep === "neighbours"
      ? "@.filter((x, i, all) => i === 0 || all[i - 1] !== x)"
      : `@.filter((x, i, all) => all.${keep === "first" ? "indexOf" : "lastIndexOf"}(x) === i)`,
  python: ({ keep }) =>
    keep === "neighbours"
      ? "[x for i, x in enumerate(@) if i == 0 or @[i - 1] != x]"
      : keep === "first"
        ? "[x for i, x in enumerate(@) if x not in @[:i]]"
        : "[x for i, x in enumerate(@) if x not in @[i + 1:]]",
  say: ({ keep }) => [
    `remove duplicates, keeping the ${keep} occurrence of each number in its place`,
    `of numbers that occur more than once keep only the ${keep} occurrence (the order of the rest stays)`,
  ],
  slips: ({ keep }) => ({
    "keeps the wrong one of two duplicates": { keep: keep === "first" ? "last" : "first" },
    "removes a duplicate only next to its twin": { keep: "neighbours" },
  }),
});

const reverse = defineOp({
  name: "reverse",
  from: "numbers",
  to: "numbers",
  level: 1,
  draw: () => ({ done: true }),
  apply: (v: Numbers, { done }) => (done ? v.toReversed() : v),
  javascript: ({ done }) => (done ? "[...@].reverse()" : "[...@]"),
  python: ({ done }) => (done ? "@[::-1]" : "@[:]"),
  say: () => ["reverse the list", "put the list in the opposite order"],
  slips: () => ({ "does not reverse": { done: false } }),
});

const ORDERS = {
  up: {
    by: (a: number, b: number) => a - b,
    js: "(a, b) => a - b",
    py: "sorted(@)",
    say: "from small to large",
  },
  down: {
    by: (a: number, b: number) => b - a,
    js: "(a, b) => b - a",
    py: "sorted(@, reverse=True)",
    say: "from large to small",
  },
  size: {
    by: (a: number, b: number) => Math.abs(a) - Math.abs(b) || a - b,
    js: "(a, b) => Math.abs(a) - Math.abs(b) || a - b",
    py: "sorted(@, key=lambda x: (abs(x), x))",
    say: "by absolute value, smallest first (of two with one absolute value the negative one comes first)",
  },
  lastDigit: {
    by: (a: number, b: number) => (Math.abs(a) % 10) - (Math.abs(b) % 10) || a - b,
    js: "(a, b) => (Math.abs(a) % 10) - (Math.abs(b) % 10) || a - b",
    py: "sorted(@, key=lambda x: (abs(x) % 10, x))",
    say: "by their last decimal digit, ties by the number itself from small to large",
  },
  text: {
    by: (a: number, b: number) => (String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0),
    js: "",
    py: "sorted(@, key=str)",
    say: "",
  },
} as const;

const sort = defineOp({
  name: "sort",
  from: "numbers",
  to: "numbers",
  level: 1,
  draw: (rng) => ({ order: pick(rng, ["up", "down", "size", "lastDigit"]) }),
  apply: (v: Numbers, { order }) => v.toSorted(ORDERS[order as "up"].by),
  javascript: ({ order }) => `[...@].sort(${ORDERS[order as "up"].js})`,
  python: ({ order }) => ORDERS[order as "up"].py,
  say: ({ order }) => [
    `sort the numbers ${ORDERS[order as "up"].say}`,
    `order the list ${ORDERS[order as "up"].say}`,
    `arrange what is left ${ORDERS[order as "up"].say}`,
  ],
  slips: ({ order }) => ({
    "sorts numbers as text": { order: "text" },
    "sorts by another criterion": { order: order === "up" ? "down" : "up" },
  }),
});

const rotate = defineOp({
  name: "rotate",
  from: "numbers",
  to: "numbers",
  level: 2,
  draw: (rng) => ({ k: between(rng, 1, 3), side: pick(rng, ["left", "right"]), wraps: true }),
  apply: (v: Numbers, { k, side, wraps }) => {
    const by = wraps ? k % Math.max(1, v.length) : Math.min(k, v.length);
    const at = side === "left" ? by : v.length - by;
    return [...v.slice(at), ...v.slice(0, at)];
  },
  javascript: ({ k, side }) => `rotated(@, ${k}, ${side === "left"})`,
  python: ({ k, side }) => `rotated(@, ${k}, ${side === "left" ? "True" : "False"})`,
  helper: ({ wraps }) => ({
    javascript: `function rotated(list, k, left) {
  const by = ${wraps ? "k % Math.max(1, list.length)" : "Math.min(k, list.length)"};
  const at = left ? by : list.length - by;
  return [...list.slice(at), ...list.slice(0, at)];
}`,
    python: `def rotated(items, k, left):
    by = ${wraps ? "k % max(1, len(items))" : "min(k, len(items))"}
    at = by if left else len(items) - by
    return items[at:] + items[:at]`,
  }),
  say: ({ k, side }) => [
    `rotate the list to the ${side} by ${k} (around the end, also when the list is shorter than that)`,
    `move ${k} ${k === 1 ? "element" : "elements"}, one at a time, from the ${side === "left" ? "front to the back" : "back to the front"}`,
  ],
  slips: ({ k, side }) => ({
    "rotates the wrong way": { side: side === "left" ? "right" : "left" },
    "rotates once too often": { k: k + 1 },
    "stops at the end of a short list": { wraps: false },
  }),
});

const everyKth = defineOp({
  name: "every-kth",
  from: "numbers",
  to: "numbers",
  level: 2,
  draw: (rng) => {
    const k = between(rng, 2, 3);
    return { k, first: rng.below(k) };
  },
  apply: (v: Numbers, { k, first }) => v.filter((_, i) => i >= first && (i - first) % k === 0),
  javascript: ({ k, first }) => `@.filter((_, i) => i >= ${first} && (i - ${first}) % ${k} === 0)`,
  python: ({ k, first }) => `@[${first}::${k}]`,
  say: ({ k, first }) => [
    `keep every ${ordinal(k)} element, beginning with the ${ordinal(first + 1)}`,
    `starting from the ${ordinal(first + 1)} element, take one out of every ${k}`,
  ],
  slips: ({ k, first }) => ({
    "begins one position late": { first: first + 1 },
    "takes steps that are too long": { k: k + 1 },
    "begins at the front": { first: 0 },
  }),
});

const cut = defineOp({
  name: "cut",
  from: "numbers",
  to: "numbers",
  level: 1,
  draw: (rng) => ({ k: between(rng, 1, 3), end: pick(rng, ["first", "last"]), keep: rng.below(2) === 1 }),
  apply: (v: Numbers, { k, end, keep }) => {
    const at = end === "first" ? k : Math.max(0, v.length - k);
    return (end === "first") === keep ? v.slice(0, at) : v.slice(at);
  },
  javascript: ({ k, end, keep }) => {
    if (end === "first") return keep ? `@.slice(0, ${k})` : `@.slice(${k})`;
    return keep ? `@.slice(-${k})` : `@.slice(0, Math.max(0, @.length - ${k}))`;
  },
  python: ({ k, end, keep }) => {
    if (end === "first") return keep ? `@[:${k}]` : `@[${k}:]`;
    return keep ? `@[-${k}:]` : `@[:max(0, len(@) - ${k})]`;
  },
  say: ({ k, end, keep }) => {
    const what = k === 1 ? `the ${end} element` : `the ${end} ${k} elements`;
    return keep
      ? [`keep only ${what} (all of them if there are no more)`, `cut the list down to ${what}`]
      : [`drop ${what} (nothing is left of a list that has no more)`, `take away ${what}`];
  },
  slips: ({ k, end, keep }) => ({
    "cuts one element too many": { k: k + 1 },
    "cuts at the wrong end": { end: end === "first" ? "last" : "first" },
    "keeps what it should drop": { keep: !keep },
  }),
});

const trimExtremes = defineOp({
  name: "trim-extremes",
  from: "numbers",
  to: "numbers",
  level: 3,
  draw: (rng) => ({ which: pick(rng, ["largest", "smallest"]), all: rng.below(2) === 1 }),
  apply: (v: Numbers, { which, all }) => {
    const worst = which === "largest" ? Math.max(...v) : Math.min(...v);
    return v.filter((x, i) => x !== worst || (!all && v.indexOf(x) !== i));
  },
  javascript: () => "trimmed(@)",
  python: () => "trimmed(@)",
  helper: ({ which, all }) => ({
    javascript: `function trimmed(list) {
  const worst = Math.${which === "largest" ? "max" : "min"}(...list);
  return list.filter((x, i) => x !== worst${all ? "" : " || list.indexOf(x) !== i"});
}`,
    python: `def trimmed(items):
    worst = ${which === "largest" ? "max" : "min"}(items, default=0)
    return [x for i, x in enumerate(items) if x != worst${all ? "" : " or items.index(x) != i"}]`,
  }),
  say: ({ which, all }) =>
    all
      ? [`remove the ${which} number wherever it occurs`, `delete every occurrence of the ${which} number`]
      : [
          `remove the ${which} number, only its first occurrence`,
          `delete one ${which} number: the one that comes first`,
        ],
  slips: ({ which, all }) => ({
    "removes the wrong number of occurrences": { all: !all },
    "removes the opposite extreme": { which: which === "largest" ? "smallest" : "largest" },
  }),
});

function ordinal(n: number): string {
  return ["zeroth", "first", "second", "third", "fourth", "fifth", "sixth"][n] ?? `${n}th`;
}

export const ORDER_OPS: readonly Op[] = [dedupe, reverse, sort, rotate, everyKth, cut, trimExtremes];
