/** Operations on text, and between text and words. ASCII only, so that every language sorts and counts the same way. */

import { pick } from "../family.ts";
import type { Words } from "./op.ts";
import { defineOp, type Op } from "./op.ts";

const splitText = defineOp({
  name: "split",
  from: "text",
  to: "words",
  level: 1,
  draw: (rng) => ({ at: pick(rng, ["space", "comma"]), empties: false }),
  apply: (v: string, { at, empties }) => {
    const parts = at === "space" ? v.split(" ") : v.split(",").map((part) => part.trim());
    return empties ? parts : parts.filter((part) => part !== "");
  },
  javascript: ({ at, empties }) =>
    `@.split("${at === "space" ? " " : ","}")${at === "comma" ? ".map((part) => part.trim())" : ""}${empties ? "" : '.filter((part) => part !== "")'}`,
  python: ({ at, empties }) => {
    const part = at === "comma" ? "part.strip()" : "part";
    return `[${part} for part in @.split("${at === "space" ? " " : ","}")${empties ? "" : ` if ${part} != ""`}]`;
  },
  say: ({ at }) =>
    at === "space"
      ? [
          "split the text at spaces (several spaces in a row count as one)",
          "cut the text into words at its spaces; there are no empty words",
        ]
      : [
          "split the text at commas, strip spaces around each part and forget empty parts",
          "cut the text at its commas; trim the pieces and leave out those that are empty",
        ],
  slips: ({ at }) => ({
    "keeps empty pieces": { empties: true },
    "splits at the wrong character": { at: at === "space" ? "comma" : "space" },
  }),
});

const CASES = {
  lower: { f: (s: string) => s.toLowerCase(), js: ".toLowerCase()", py: ".lower()", say: "lower case" },
  upper: { f: (s: string) => s.toUpperCase(), js: ".toUpperCase()", py: ".upper()", say: "upper case" },
} as const;

const changeCase = defineOp({
  name: "change-case",
  from: "text",
  to: "text",
  level: 1,
  draw: (rng) => ({ to: pick(rng, ["lower", "upper"]) }),
  apply: (v: string, { to }) => CASES[to as "lower"].f(v),
  javascript: ({ to }) => `@${CASES[to as "lower"].js}`,
  python: ({ to }) => `@${CASES[to as "lower"].py}`,
  say: ({ to }) => [
    `write everything in ${CASES[to as "lower"].say}`,
    `convert the text to ${CASES[to as "lower"].say}`,
  ],
  slips: ({ to }) => ({ "uses the wrong case": { to: to === "lower" ? "upper" : "lower" } }),
});

const dropCharacters = defineOp({
  name: "drop-characters",
  from: "text",
  to: "text",
  level: 2,
  draw: (rng) => ({ what: pick(rng, ["digits", "vowels", "marks"]), all: true, big: true }),
  apply: (v: string, { what, all, big }) =>
    v.replace(new RegExp(CLASSES[what as "digits"][big ? 0 : 1], all ? "g" : ""), ""),
  javascript: ({ what, all, big }) =>
    `@.replace(/${CLASSES[what as "digits"][big ? 0 : 1]}/${all ? "g" : ""}, "")`,
  python: ({ what, all, big }) =>
    `re.sub(r"${CLASSES[what as "digits"][big ? 0 : 1]}", "", @${all ? "" : ", count=1"})`,
  say: ({ what }) => {
    const name = {
      digits: "every digit",
      vowels: "every vowel (a, e, i, o, u, small or capital)",
      marks: "every full stop, exclamation mark, question mark and semicolon",
    }[what as "digits"];
    return [`delete ${name}`, `remove ${name} from the text`];
  },
  slips: ({ what }) => ({
    "removes only the first one": { all: false },
    ...(what === "digits" ? {} : { "misses some of the characters": { big: false } }),
  }),
});
const CLASSES = {
  digits: ["[0-9]", "[0-9]"],
  vowels: ["[aeiouAEIOU]", "[aeiou]"],
  marks: ["[.!?;]", "[.!]"],
} as const;

const squeeze = defineOp({
  name: "squeeze",
  from: "text",
  to: "text",
  level: 2,
  draw: () => ({ how: "runs" }),
  apply: (v: string, { how }) => v.replace(how === "runs" ? /(.)\1+/g : /(.)\1/g, "$1"),
  javascript: ({ how }) => `@.replace(/(.)\\1${how === "runs" ? "+" : ""}/g, "$1")`,
  python: ({ how }) => `re.sub(r"(.)\\1${how === "runs" ? "+" : ""}", r"\\1", @)`,
  say: () => [
    "shorten every run of the same character to a single one (capital and small letters differ)",
    "where a character stands several times in a row, keep it once",
  ],
  slips: () => ({ "shortens a run of three to two": { how: "pairs" } }),
});

const join = defineOp({
  name: "join",
  from: "words",
  to: "text",
  level: 1,
  draw: (rng) => ({ with: pick(rng, ["-", "+", " "]), initials: rng.below(3) === 0, end: false }),
  apply: (v: Words, { with: mark, initials, end }) => {
    const joined = (initials ? v.map((w) => w.slice(0, 1)) : v).join(mark);
    return end && v.length > 0 ? joined + mark : joined;
  },
  javascript: ({ with: mark, initials, end }) => {
    const joined = `@${initials ? ".map((w) => w.slice(0, 1))" : ""}.join("${mark}")`;
    return end ? `${joined} + (@.length > 0 ? "${mark}" : "")` : joined;
  },
  python: ({ with: mark, initials, end }) => {
    const joined = `"${mark}".join(${initials ? "[w[:1] for w in @]" : "@"})`;
    return end ? `${joined} + ("${mark}" if @ else "")` : joined;
  },
  say: ({ with: mark, initials }) => {
    const name = mark === " " ? "a space" : mark === "-" ? "a hyphen" : "a plus sign";
    return initials
      ? [
          `join the first characters of the words with ${name} between them`,
          `take the initial of each word and put ${name} between them`,
        ]
      : [`join the words with ${name} between them`, `make one text again, with ${name} between the words`];
  },
  slips: ({ initials }) => ({
    "leaves a separator at the end": { end: true },
    "takes too much or too little of each word": { initials: !initials },
  }),
});

export const TEXT_OPS: readonly Op[] = [splitText, changeCase, dropCharacters, squeeze, join];
