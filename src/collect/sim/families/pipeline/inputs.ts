/** Inputs for pipelines: ordinary inputs, and the edge cases for hidden tests. */
import type { Rng } from "../../../../base/index.ts";
import type { Args } from "../code-task.ts";
import { between, pick } from "../family.ts";

interface Inputs {
  readonly plain: readonly Args[];
  readonly edges: readonly Args[];
}

export function numberInputs(rng: Rng): Inputs {
  const list = (length: number, low: number, high: number) =>
    Array.from({ length }, () => between(rng, low, high));
  const plain = Array.from({ length: 10 }, () => [list(between(rng, 5, 8), -9, 30)]);
  const edges = [
    [[]],
    [[between(rng, 1, 20)]],
    [[0, 0, 0, 0]],
    [list(2, -9, 9)],
    [list(9, 0, 3)],
    [list(9, 4, 6)],
    [list(6, -30, -1)],
    [list(7, 95, 130)],
    [list(14, -12, 12)],
    [list(15, 0, 40)],
    [list(8, -9, 30).toSorted((a, b) => a - b)],
    [list(8, -9, 30).toSorted((a, b) => b - a)],
    ...Array.from({ length: 8 }, () => [list(between(rng, 3, 12), -15, 35)]),
  ];
  return { plain, edges };
}

export function textInputs(rng: Rng): Inputs {
  const word = () => {
    const base = pick(rng, WORDS);
    const form = rng.below(6);
    if (form === 0) return base.toUpperCase();
    if (form === 1) return base.slice(0, 1).toUpperCase() + base.slice(1);
    return form === 2 ? `${base}${between(rng, 1, 99)}` : base;
  };
  const sentence = (count: number, ends: readonly string[]) =>
    Array.from({ length: count }, word)
      .map((each, i) => (i === count - 1 ? each : each + pick(rng, ends)))
      .join("");
  const plain = Array.from({ length: 10 }, () => [sentence(between(rng, 4, 7), [" ", " ", ", "])]);
  const twice = word();
  const edges = [
    [""],
    ["   "],
    [word()],
    [`  ${word()}  ${word()} `],
    [`,${word()},, ${word()} ,`],
    [`${twice} ${twice} ${twice.toUpperCase()} ${twice.toLowerCase()}`],
    [`${twice}, ${twice.toUpperCase()},${twice}`],
    ["zoo Zebra XYZ xylophone aAaA"],
    ["a b c d e f g a b"],
    ["aaaa, bbb , cc,d"],
    [`${sentence(5, ["  ", ", ", "; "])}!?`],
    ...Array.from({ length: 9 }, () => [sentence(between(rng, 3, 10), [" ", ",", ", ", "! ", "  "])]),
  ];
  return { plain, edges };
}

const WORDS = [
  ...["amber", "bottle", "canoe", "dune", "ember", "forest", "garden", "hill", "island", "jazz", "kettle"],
  ...["lagoon", "meadow", "needle", "ocean", "pepper", "quartz", "river", "spoon", "tiger", "umbrella"],
  "valley",
  "window",
  "yellow",
  "zebra",
  "oak",
  "pea",
  "ink",
  "at",
  "be",
  "committee",
  "balloon",
  "address",
];
