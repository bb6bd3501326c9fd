/** A family of tasks from outside the package: Roman numerals. `rollbook sim generate --family-file` draws from it.
 *  A draw makes a whole task from randomness alone: what the agent sees, how it is graded, and solutions that prove it. */
const VALUES = [
  [1000, "M"],
  [900, "CM"],
  [500, "D"],
  [400, "CD"],
  [100, "C"],
  [90, "XC"],
  [50, "L"],
  [40, "XL"],
  [10, "X"],
  [9, "IX"],
  [5, "V"],
  [4, "IV"],
  [1, "I"],
];

export default {
  name: "roman-numerals",
  language: "javascript",
  draw(rng, difficulty) {
    const numbers = Array.from({ length: 4 }, () => 1 + rng.below(4 * 10 ** Math.min(3, difficulty)));
    if (new Set(numbers).size < numbers.length) return { unusable: "a number stands twice" };
    const asked = numbers.map((number) => toRoman(Math.min(number, 3999)));
    const right = numbers.map((number) => Math.min(number, 3999));
    const mutants = [
      wrong("forgets that a smaller numeral before a larger one is subtracted", asked.map(sumOf)),
      wrong("is one too high at the first", [right[0] + 1, ...right.slice(1)]),
      wrong("swaps the last two", [...right.slice(0, 2), right[3], right[2]]),
      wrong("leaves out the last", right.slice(0, 3)),
    ].filter(({ files }) => files["answers.json"] !== answers(right));
    if (mutants.length < 4) return { unusable: "no numeral needs a subtraction" };
    return {
      visible: {
        statement: `Write the values of these Roman numerals into answers.json, as a list: ${asked.join(", ")}.`,
        files: { "answers.json": "[]\n", "check.mjs": CHECK },
        editable: ["answers.json"],
        check: { kind: "javascript", entry: "check.mjs" },
      },
      grading: { kind: "answers", path: "answers.json", expected: right },
      solutions: { reference: { "answers.json": answers(right) }, mutants },
    };
  },
};

/** The visible test sees the form only; what is right never enters the sandbox. */
const CHECK = `import { readFileSync } from "node:fs";
const answers = JSON.parse(readFileSync(process.cwd() + "/answers.json", "utf8"));
if (answers.length === 0) process.exitCode = 1;
`;

function wrong(flaw, values) {
  return { flaw, files: { "answers.json": answers(values) } };
}

function answers(values) {
  return `${JSON.stringify(values)}\n`;
}

function toRoman(number) {
  let text = "";
  for (const [value, numeral] of VALUES) for (; number >= value; number -= value) text += numeral;
  return text;
}

function sumOf(numeral) {
  return [...numeral].reduce((sum, letter) => sum + VALUES.find(([, name]) => name === letter)[0], 0);
}
