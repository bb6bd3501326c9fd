/** Operations on neighbours, groups and runs in a list of numbers. */

import { between, pick } from "../family.ts";
import type { Numbers } from "./op.ts";
import { defineOp, type Op } from "./op.ts";

const running = defineOp({
  name: "running",
  from: "numbers",
  to: "numbers",
  level: 2,
  draw: (rng) => ({ what: pick(rng, ["sum", "max", "min"]), before: false }),
  apply: (v: Numbers, { what, before }) => {
    const fold = { sum: (a: number, b: number) => a + b, max: Math.max, min: Math.min }[what as "sum"];
    const all: number[] = [];
    for (const x of v) all.push(all.length === 0 ? x : fold(all.at(-1)!, x));
    return before ? all.map((_, i) => (i === 0 ? 0 : all[i - 1]!)) : all;
  },
  javascript: () => "runningValues(@)",
  python: () => "running_values(@)",
  helper: ({ what, before }) => ({
    javascript: `function runningValues(list) {
  const all = [];
  for (const x of list) {
    all.push(all.length === 0 ? x : ${what === "sum" ? "all[all.length - 1] + x" : `Math.${what}(all[all.length - 1], x)`});
  }
  return ${before ? "all.map((_, i) => (i === 0 ? 0 : all[i - 1]))" : "all"};
}`,
    python: `def running_values(items):
    out = []
    for x in items:
        out.append(x if not out else ${what === "sum" ? "out[-1] + x" : `${what}(out[-1], x)`})
    return ${before ? "[0] + out[:-1] if out else out" : "out"}`,
  }),
  say: ({ what }) => {
    const name = { sum: "sum", max: "maximum", min: "minimum" }[what as "sum"];
    return [
      `replace each element by the ${name} of all elements up to and including it`,
      `turn the list into its running ${name}`,
    ];
  },
  slips: ({ what }) => ({
    "leaves the element itself out": { before: true },
    "keeps another running value": { what: what === "sum" ? "max" : "sum" },
  }),
});

const differences = defineOp({
  name: "differences",
  from: "numbers",
  to: "numbers",
  level: 2,
  draw: (rng) => ({ how: pick(rng, ["later", "distance"]) }),
  apply: (v: Numbers, { how }) =>
    v.slice(1).map((x, i) => {
      const change = x - v[i]!;
      return how === "later" ? change : how === "distance" ? Math.abs(change) : 0 - change;
    }),
  javascript: ({ how }) => {
    const inner = how === "later" ? "x - @[i]" : how === "distance" ? "Math.abs(x - @[i])" : "@[i] - x";
    return `@.slice(1).map((x, i) => ${inner})`;
  },
  python: ({ how }) =>
    `[${how === "later" ? "b - a" : how === "distance" ? "abs(b - a)" : "a - b"} for a, b in zip(@, @[1:])]`,
  say: ({ how }) =>
    how === "later"
      ? [
          "replace the list by the differences between neighbours, each element minus the one before it (one entry fewer)",
          "compute how much each element exceeds its predecessor; the first has none and yields nothing",
        ]
      : [
          "replace the list by the distances (never negative) between neighbours",
          "compute the absolute differences of consecutive elements",
        ],
  slips: ({ how }) => ({
    "subtracts the wrong way round": { how: "earlier" },
    "confuses a difference with a distance": { how: how === "later" ? "distance" : "later" },
  }),
});

const chunks = defineOp({
  name: "chunks",
  from: "numbers",
  to: "numbers",
  level: 3,
  draw: (rng) => ({ k: between(rng, 2, 3), what: pick(rng, ["sum", "max", "first"]), whole: false }),
  apply: (v: Numbers, { k, what, whole }) => {
    const groups: number[][] = [];
    for (let i = 0; i < v.length; i += k) groups.push(v.slice(i, i + k));
    return groups
      .filter((group) => !whole || group.length === k)
      .map((group) =>
        what === "sum" ? group.reduce((a, b) => a + b, 0) : what === "max" ? Math.max(...group) : group[0]!,
      );
  },
  javascript: ({ k }) => `summarised(@, ${k})`,
  python: ({ k }) => `summarised(@, ${k})`,
  helper: ({ what, whole }) => ({
    javascript: `function summarised(list, size) {
  const out = [];
  for (let i = 0; ${whole ? "i + size <= list.length" : "i < list.length"}; i += size) {
    const group = list.slice(i, i + size);
    out.push(${what === "sum" ? "group.reduce((a, b) => a + b, 0)" : what === "max" ? "Math.max(...group)" : "group[0]"});
  }
  return out;
}`,
    python: `def summarised(items, size):
    out = []
    for i in range(0, len(items)${whole ? " - size + 1" : ""}, size):
        group = items[i:i + size]
        out.append(${what === "sum" ? "sum(group)" : what === "max" ? "max(group)" : "group[0]"})
    return out`,
  }),
  say: ({ k, what }) => {
    const name = { sum: "sum", max: "largest element", first: "first element" }[what as "sum"];
    return [
      `split the list into groups of ${k} from the front (the last group may be shorter) and replace each group by its ${name}`,
      `for every ${k} consecutive elements, a shorter rest included, keep only the ${name}`,
    ];
  },
  slips: ({ k, what }) => ({
    "forgets the last, shorter group": { whole: true },
    "makes groups that are too large": { k: k + 1 },
    "keeps something else of each group": { what: what === "max" ? "first" : "max" },
  }),
});

const windows = defineOp({
  name: "windows",
  from: "numbers",
  to: "numbers",
  level: 3,
  draw: (rng) => ({ k: between(rng, 2, 3), what: pick(rng, ["sum", "spread"]), rest: 0 }),
  apply: (v: Numbers, { k, what, rest }) => {
    const out: number[] = [];
    for (let i = 0; i + k <= v.length + rest; i++) {
      const window = v.slice(i, i + k);
      out.push(
        what === "sum" ? window.reduce((a, b) => a + b, 0) : Math.max(...window) - Math.min(...window),
      );
    }
    return out;
  },
  javascript: ({ k }) => `overWindows(@, ${k})`,
  python: ({ k }) => `over_windows(@, ${k})`,
  helper: ({ what, rest }) => ({
    javascript: `function overWindows(list, size) {
  const out = [];
  for (let i = 0; i + size <= list.length${rest ? ` + ${rest}` : ""}; i++) {
    const part = list.slice(i, i + size);
    out.push(${what === "sum" ? "part.reduce((a, b) => a + b, 0)" : "Math.max(...part) - Math.min(...part)"});
  }
  return out;
}`,
    python: `def over_windows(items, size):
    out = []
    for i in range(len(items) - size + 1${rest ? ` + ${rest}` : ""}):
        part = items[i:i + size]
        out.append(${what === "sum" ? "sum(part)" : "max(part) - min(part)"})
    return out`,
  }),
  say: ({ k, what }) => {
    const name = what === "sum" ? "sum" : "difference between largest and smallest";
    return [
      `slide a window of ${k} over the list, one position at a time, and collect the ${name} of each full window`,
      `for each run of ${k} adjacent elements (overlapping, full runs only) compute the ${name}`,
    ];
  },
  slips: ({ k, what }) => ({
    "misses by one where the last window ends": { rest: 1 },
    "uses windows of the wrong size": { k: k + 1 },
    "collects something else of each window": { what: what === "sum" ? "spread" : "sum" },
  }),
});

const runLengths = defineOp({
  name: "runs",
  from: "numbers",
  to: "numbers",
  level: 3,
  draw: (rng) => ({ what: pick(rng, ["length", "value"]), last: true }),
  apply: (v: Numbers, { what, last }) => {
    const out: number[] = [];
    let length = 0;
    for (let i = 0; i < v.length; i++) {
      length++;
      const ends = i + 1 === v.length ? last : v[i + 1] !== v[i];
      if (ends) {
        out.push(what === "length" ? length : v[i]!);
        length = 0;
      }
    }
    return out;
  },
  javascript: () => "runsOf(@)",
  python: () => "runs_of(@)",
  helper: ({ what, last }) => ({
    javascript: `function runsOf(list) {
  const out = [];
  let length = 0;
  for (let i = 0; i < list.length; i++) {
    length++;
    if (${last ? "i + 1 === list.length || " : "i + 1 < list.length && "}list[i + 1] !== list[i]) {
      out.push(${what === "length" ? "length" : "list[i]"});
      length = 0;
    }
  }
  return out;
}`,
    python: `def runs_of(items):
    out = []
    length = 0
    for i, x in enumerate(items):
        length += 1
        if ${last ? "i + 1 == len(items) or " : "i + 1 < len(items) and "}items[i + 1] != x:
            out.append(${what === "length" ? "length" : "x"})
            length = 0
    return out`,
  }),
  say: ({ what }) =>
    what === "length"
      ? [
          "replace every maximal run of equal neighbours by its length",
          "count how long each stretch of identical consecutive elements is, and list these lengths",
        ]
      : [
          "collapse every run of equal neighbours into one element",
          "where the same number stands several times in a row, keep it once",
        ],
  slips: ({ what }) => ({
    "forgets the last run": { last: false },
    "gives the other thing of each run": { what: what === "length" ? "value" : "length" },
  }),
});

const peaks = defineOp({
  name: "peaks",
  from: "numbers",
  to: "numbers",
  level: 3,
  draw: (rng) => ({ high: rng.below(2) === 1, strict: true, ends: false }),
  apply: (v: Numbers, { high, strict, ends }) =>
    v.filter((x, i) => {
      const beats = (y: number | undefined) =>
        y === undefined ? ends : y === x ? !strict : high ? x > y : x < y;
      return beats(v[i - 1]) && beats(v[i + 1]);
    }),
  javascript: () => "extremesOf(@)",
  python: () => "extremes_of(@)",
  helper: ({ high, strict, ends }) => {
    const sign = `${high ? ">" : "<"}${strict ? "" : "="}`;
    return {
      javascript: `function extremesOf(list) {
  const beats = (x, y) => (y === undefined ? ${ends} : x ${sign} y);
  return list.filter((x, i) => beats(x, list[i - 1]) && beats(x, list[i + 1]));
}`,
      python: `def extremes_of(items):
    def beats(x, at):
        return ${ends ? "True" : "False"} if at < 0 or at >= len(items) else x ${sign} items[at]

    return [x for i, x in enumerate(items) if beats(x, i - 1) and beats(x, i + 1)]`,
    };
  },
  say: ({ high }) => {
    const how = high ? "greater" : "less";
    return [
      `keep only the elements that are strictly ${how} than both neighbours (the first and the last element have one neighbour only and are never kept)`,
      `find the local ${high ? "peaks" : "valleys"}: elements with two neighbours and ${how} than each of them`,
    ];
  },
  slips: ({ high }) => ({
    "accepts equal neighbours": { strict: false },
    "keeps elements at the ends too": { ends: true },
    "looks for the opposite": { high: !high },
  }),
});

export const NEIGHBOUR_OPS: readonly Op[] = [running, differences, chunks, windows, runLengths, peaks];
