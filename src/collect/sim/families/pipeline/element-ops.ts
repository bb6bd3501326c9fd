/** Operations on each number of a list. Results stay small enough for exact arithmetic in every language. */

import { between, pick } from "../family.ts";
import type { Numbers } from "./op.ts";
import { defineOp, type Op } from "./op.ts";

type Compare = ">" | ">=" | "<" | "<=";

const COMPARE: Readonly<
  Record<Compare, { test(a: number, b: number): boolean; say: string; slip: Compare }>
> = {
  ">": { test: (a, b) => a > b, say: "greater than", slip: ">=" },
  ">=": { test: (a, b) => a >= b, say: "at least", slip: ">" },
  "<": { test: (a, b) => a < b, say: "less than", slip: "<=" },
  "<=": { test: (a, b) => a <= b, say: "at most", slip: "<" },
};

const keepCompared = defineOp({
  name: "keep-compared",
  from: "numbers",
  to: "numbers",
  level: 1,
  draw: (rng) => ({ k: between(rng, -3, 12), how: pick(rng, [">", ">=", "<", "<="] as Compare[]) as string }),
  apply: (v: Numbers, { k, how }) => v.filter((x) => COMPARE[how as Compare].test(x, k)),
  javascript: ({ k, how }) => `@.filter((x) => x ${how} ${k})`,
  python: ({ k, how }) => `[x for x in @ if x ${how} ${k}]`,
  say: ({ k, how }) => [
    `keep only the numbers that are ${COMPARE[how as Compare].say} ${k}`,
    `throw away every number that is not ${COMPARE[how as Compare].say} ${k}`,
    `retain the entries which are ${COMPARE[how as Compare].say} ${k}`,
  ],
  slips: ({ k, how }) => ({
    "treats the bound itself wrongly": { how: COMPARE[how as Compare].slip as string },
    "uses a bound that is off by one": { k: k + (how.startsWith(">") ? 1 : -1) },
  }),
});

const keepMultiples = defineOp({
  name: "keep-multiples",
  from: "numbers",
  to: "numbers",
  level: 1,
  draw: (rng) => ({ k: between(rng, 2, 4), not: rng.below(2) === 1, signed: true }),
  apply: (v: Numbers, { k, not, signed }) => v.filter((x) => (x % k === 0) !== not && (signed || x >= 0)),
  javascript: ({ k, not, signed }) =>
    `@.filter((x) => x % ${k} ${not ? "!==" : "==="} 0${signed ? "" : " && x >= 0"})`,
  python: ({ k, not, signed }) =>
    `[x for x in @ if x % ${k} ${not ? "!=" : "=="} 0${signed ? "" : " and x >= 0"}]`,
  say: ({ k, not }) =>
    not
      ? [`remove the multiples of ${k}`, `drop every number divisible by ${k} (zero and negative ones too)`]
      : [`keep just the multiples of ${k}`, `keep the numbers divisible by ${k}, whatever their sign`],
  slips: ({ k, not }) => ({
    "keeps what it should remove": { not: !not },
    "tests divisibility by the next number": { k: k + 1 },
    "forgets negative numbers": { signed: false },
  }),
});

const affine = defineOp({
  name: "scale-and-shift",
  from: "numbers",
  to: "numbers",
  level: 1,
  draw: (rng) => ({ a: between(rng, 2, 5), b: between(rng, 1, 9), shiftFirst: rng.below(2) === 1 }),
  apply: (v: Numbers, { a, b, shiftFirst }) => v.map((x) => (shiftFirst ? (x + b) * a : x * a + b)),
  javascript: ({ a, b, shiftFirst }) =>
    `@.map((x) => ${shiftFirst ? `(x + ${b}) * ${a}` : `x * ${a} + ${b}`})`,
  python: ({ a, b, shiftFirst }) => `[${shiftFirst ? `(x + ${b}) * ${a}` : `x * ${a} + ${b}`} for x in @]`,
  say: ({ a, b, shiftFirst }) =>
    shiftFirst
      ? [
          `add ${b} to each number and multiply the result by ${a}`,
          `increase every entry by ${b}, then take it ${a} times`,
        ]
      : [`multiply each number by ${a} and then add ${b}`, `replace every x by ${a} times x, plus ${b}`],
  slips: ({ b, shiftFirst }) => ({
    "does the two parts in the wrong order": { shiftFirst: !shiftFirst },
    "adds one too many": { b: b + 1 },
  }),
});

const SIGN = {
  abs: { f: (x: number) => Math.abs(x), js: "Math.abs(x)", py: "abs(x)", say: "its absolute value" },
  square: { f: (x: number) => x * x, js: "x * x", py: "x * x", say: "its square" },
  negate: { f: (x: number) => 0 - x, js: "0 - x", py: "-x", say: "its negative" },
} as const;

const replaceEach = defineOp({
  name: "replace-each",
  from: "numbers",
  to: "numbers",
  level: 1,
  draw: (rng) => ({ by: pick(rng, ["abs", "square", "negate"]) }),
  apply: (v: Numbers, { by }) => v.map(SIGN[by as "abs"].f),
  javascript: ({ by }) => `@.map((x) => ${SIGN[by as "abs"].js})`,
  python: ({ by }) => `[${SIGN[by as "abs"].py} for x in @]`,
  say: ({ by }) => [
    `replace each number by ${SIGN[by as "abs"].say}`,
    `turn every number into ${SIGN[by as "abs"].say}`,
  ],
  slips: ({ by }) => ({
    "computes another function of each number": { by: by === "abs" ? "negate" : "abs" },
  }),
});

const clamp = defineOp({
  name: "clamp",
  from: "numbers",
  to: "numbers",
  level: 2,
  draw: (rng) => ({ low: between(rng, -5, 2), high: between(rng, 9, 20), sides: "both" }),
  apply: (v: Numbers, { low, high, sides }) =>
    v.map((x) => {
      const least = sides === "upper" ? x : Math.max(x, low);
      return sides === "lower" ? least : Math.min(least, high);
    }),
  javascript: ({ low, high, sides }) =>
    sides === "both"
      ? `@.map((x) => Math.min(${high}, Math.max(${low}, x)))`
      : `@.map((x) => Math.${sides === "upper" ? `min(${high}` : `max(${low}`}, x))`,
  python: ({ low, high, sides }) =>
    sides === "both"
      ? `[min(${high}, max(${low}, x)) for x in @]`
      : `[${sides === "upper" ? `min(${high}` : `max(${low}`}, x) for x in @]`,
  say: ({ low, high }) => [
    `limit every number to the range from ${low} to ${high} (smaller ones become ${low}, larger ones ${high})`,
    `raise numbers under ${low} to ${low} and lower numbers over ${high} to ${high}`,
  ],
  slips: ({ low, high }) => ({
    "forgets the lower limit": { sides: "upper" },
    "forgets the upper limit": { sides: "lower" },
    "has a limit that is off by one": { high: high - 1, low },
  }),
});

const digitSums = defineOp({
  name: "digit-sums",
  from: "numbers",
  to: "numbers",
  level: 2,
  draw: () => ({ how: "sum" }),
  apply: (v: Numbers, { how }) =>
    v.map((x) => {
      const digits = [...String(Math.abs(x))].map(Number);
      return how === "count"
        ? digits.length
        : how === "last"
          ? digits.at(-1)!
          : digits.reduce((a, b) => a + b, 0);
    }),
  javascript: () => "@.map(digitSum)",
  python: () => "[digit_sum(x) for x in @]",
  helper: ({ how }) => ({
    javascript: `function digitSum(x) {
  const digits = [...String(Math.abs(x))].map(Number);
  return ${how === "count" ? "digits.length" : how === "last" ? "digits[digits.length - 1]" : "digits.reduce((a, b) => a + b, 0)"};
}`,
    python: `def digit_sum(x):
    digits = [int(digit) for digit in str(abs(x))]
    return ${how === "count" ? "len(digits)" : how === "last" ? "digits[-1]" : "sum(digits)"}`,
  }),
  say: () => [
    "replace each number by the sum of its decimal digits (the sign does not matter)",
    "turn every number into its digit sum, ignoring a minus sign",
  ],
  slips: () => ({
    "counts digits instead of adding them": { how: "count" },
    "takes the last digit only": { how: "last" },
  }),
});

export const ELEMENT_OPS: readonly Op[] = [
  keepCompared,
  keepMultiples,
  affine,
  replaceEach,
  clamp,
  digitSums,
];
