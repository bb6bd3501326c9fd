/** Operations that end a pipeline over numbers with a single number. The answer for an empty list is defined. */

import { pick } from "../family.ts";
import type { Numbers } from "./op.ts";
import { defineOp, type Op } from "./op.ts";

const total = defineOp({
  name: "total",
  from: "numbers",
  to: "number",
  level: 1,
  draw: () => ({ from: 0 }),
  apply: (v: Numbers, { from }) => v.slice(from).reduce((a, b) => a + b, 0),
  javascript: ({ from }) => `@${from ? `.slice(${from})` : ""}.reduce((a, b) => a + b, 0)`,
  python: ({ from }) => `sum(@${from ? `[${from}:]` : ""})`,
  say: () => ["return the sum of what is left (0 for nothing)", "add everything up and return the total"],
  slips: () => ({ "skips the first element": { from: 1 } }),
});

const count = defineOp({
  name: "count",
  from: "numbers",
  to: "number",
  level: 1,
  draw: (rng) => ({ distinct: rng.below(2) === 1 }),
  apply: (v: Numbers, { distinct }) => (distinct ? new Set(v).size : v.length),
  javascript: ({ distinct }) => (distinct ? "new Set(@).size" : "@.length"),
  python: ({ distinct }) => (distinct ? "len(set(@))" : "len(@)"),
  say: ({ distinct }) =>
    distinct
      ? ["return how many different numbers there are", "return the number of distinct values"]
      : ["return how many numbers are left", "return the length of the resulting list"],
  slips: ({ distinct }) => ({ "confuses all numbers with different numbers": { distinct: !distinct } }),
});

const extreme = defineOp({
  name: "extreme",
  from: "numbers",
  to: "number",
  level: 2,
  draw: (rng) => ({ which: pick(rng, ["max", "min"]), empty: pick(rng, [0, -1]) }),
  apply: (v: Numbers, { which, empty }) =>
    v.length === 0 ? empty : which === "max" ? Math.max(...v) : Math.min(...v),
  javascript: ({ which, empty }) => `(@.length === 0 ? ${empty} : Math.${which}(...@))`,
  python: ({ which, empty }) => `${which}(@, default=${empty})`,
  say: ({ which, empty }) => {
    const name = which === "max" ? "largest" : "smallest";
    return [
      `return the ${name} number, or ${empty} if the list is empty`,
      `return the ${which === "max" ? "maximum" : "minimum"} (${empty} when nothing is left)`,
    ];
  },
  slips: ({ which, empty }) => ({
    "gives the opposite extreme": { which: which === "max" ? "min" : "max" },
    "gives the wrong answer for an empty list": { empty: empty === 0 ? -1 : 0 },
  }),
});

const alternating = defineOp({
  name: "alternating",
  from: "numbers",
  to: "number",
  level: 2,
  draw: () => ({ sign: 1 }),
  apply: (v: Numbers, { sign }) => v.reduce((sum, x, i) => sum + (i % 2 === 0 ? sign : 0 - sign) * x, 0),
  javascript: ({ sign }) =>
    `@.reduce((sum, x, i) => sum ${sign === 1 ? "+" : "-"} (i % 2 === 0 ? x : -x), 0)`,
  python: ({ sign }) => `sum(x if i % 2 == ${sign === 1 ? 0 : 1} else -x for i, x in enumerate(@))`,
  say: () => [
    "return the alternating sum: the first minus the second plus the third and so on (0 for an empty list)",
    "return first − second + third − fourth …, or 0 if there is nothing",
  ],
  slips: () => ({ "begins with the wrong sign": { sign: -1 } }),
});

const mode = defineOp({
  name: "mode",
  from: "numbers",
  to: "number",
  level: 3,
  draw: (rng) => ({ tie: pick(rng, ["smallest", "largest"]), empty: pick(rng, [0, -1]) }),
  apply: (v: Numbers, { tie, empty }) => {
    if (v.length === 0) return empty;
    const times = (x: number) => v.filter((y) => y === x).length;
    const most = Math.max(...v.map(times));
    const often = v.filter((x) => times(x) === most);
    return tie === "smallest" ? Math.min(...often) : tie === "largest" ? Math.max(...often) : often[0]!;
  },
  javascript: () => "mostFrequent(@)",
  python: () => "most_frequent(@)",
  helper: ({ tie, empty }) => ({
    javascript: `function mostFrequent(list) {
  if (list.length === 0) return ${empty};
  const times = (x) => list.filter((y) => y === x).length;
  const most = Math.max(...list.map(times));
  const often = list.filter((x) => times(x) === most);
  return ${tie === "smallest" ? "Math.min(...often)" : tie === "largest" ? "Math.max(...often)" : "often[0]"};
}`,
    python: `def most_frequent(items):
    if not items:
        return ${empty}
    most = max(items.count(x) for x in items)
    often = [x for x in items if items.count(x) == most]
    return ${tie === "smallest" ? "min(often)" : tie === "largest" ? "max(often)" : "often[0]"}`,
  }),
  say: ({ tie, empty }) => [
    `return the number that occurs most often; in a tie the ${tie} of them; ${empty} for an empty list`,
    `return the most frequent value (the ${tie} one if several are equally frequent, ${empty} if there is none)`,
  ],
  slips: ({ tie, empty }) => ({
    "breaks ties by what comes first": { tie: "first" },
    "breaks ties the wrong way": { tie: tie === "smallest" ? "largest" : "smallest" },
    "gives the wrong answer for an empty list": { empty: empty === 0 ? -1 : 0 },
  }),
});

const longest = defineOp({
  name: "longest-rise",
  from: "numbers",
  to: "number",
  level: 3,
  draw: (rng) => ({ strict: rng.below(2) === 1, up: rng.below(2) === 1 }),
  apply: (v: Numbers, { strict, up }) => {
    let best = 0;
    let length = 0;
    for (const [i, x] of v.entries()) {
      const before = v[i - 1];
      const goesOn = before !== undefined && (x === before ? !strict : up ? x > before : x < before);
      length = goesOn ? length + 1 : 1;
      best = Math.max(best, length);
    }
    return best;
  },
  javascript: () => "longestStretch(@)",
  python: () => "longest_stretch(@)",
  helper: ({ strict, up }) => {
    const sign = `${up ? ">" : "<"}${strict ? "" : "="}`;
    return {
      javascript: `function longestStretch(list) {
  let best = 0;
  let length = 0;
  for (let i = 0; i < list.length; i++) {
    length = i > 0 && list[i] ${sign} list[i - 1] ? length + 1 : 1;
    best = Math.max(best, length);
  }
  return best;
}`,
      python: `def longest_stretch(items):
    best = 0
    length = 0
    for i, x in enumerate(items):
        length = length + 1 if i > 0 and x ${sign} items[i - 1] else 1
        best = max(best, length)
    return best`,
    };
  },
  say: ({ strict, up }) => {
    const how = strict ? (up ? "greater" : "less") : up ? "greater or equal" : "less or equal";
    return [
      `return the length of the longest stretch of consecutive elements in which each is ${how} ${strict ? "than" : "to"} the one before (0 for an empty list)`,
      `return how many elements the longest ${strict ? "strictly" : "weakly"} ${up ? "rising" : "falling"} contiguous stretch has; an empty list gives 0`,
    ];
  },
  slips: ({ strict, up }) => ({
    "treats equal neighbours wrongly": { strict: !strict },
    "looks in the wrong direction": { up: !up },
  }),
});

export const FINAL_OPS: readonly Op[] = [total, count, extreme, alternating, mode, longest];
