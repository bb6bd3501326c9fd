/** Operations on lists of words. ASCII only, so that every language sorts and counts the same way. */

import { between, pick } from "../family.ts";
import type { Words } from "./op.ts";
import { defineOp, type Op } from "./op.ts";

const lengthFilter = defineOp({
  name: "keep-by-length",
  from: "words",
  to: "words",
  level: 1,
  draw: (rng) => ({ k: between(rng, 3, 5), how: pick(rng, [">=", "<="]) }),
  apply: (v: Words, { k, how }) =>
    v.filter((w) =>
      how === ">=" ? w.length >= k : how === "<=" ? w.length <= k : how === ">" ? w.length > k : w.length < k,
    ),
  javascript: ({ k, how }) => `@.filter((w) => w.length ${how} ${k})`,
  python: ({ k, how }) => `[w for w in @ if len(w) ${how} ${k}]`,
  say: ({ k, how }) => [
    `keep only words with at ${how === ">=" ? "least" : "most"} ${k} characters`,
    `forget words ${how === ">=" ? "shorter" : "longer"} than ${k} characters`,
  ],
  slips: ({ k, how }) => ({
    "is off by one in the length": { how: how.slice(0, 1) },
    "uses a length that is too large": { k: k + 1 },
  }),
});

const reverseWords = defineOp({
  name: "reverse-words",
  from: "words",
  to: "words",
  level: 1,
  draw: (rng) => ({ what: pick(rng, ["each", "order"]) }),
  apply: (v: Words, { what }) =>
    what === "each"
      ? v.map((w) => [...w].reverse().join(""))
      : what === "order"
        ? v.toReversed()
        : v.map((w) => [...w].reverse().join("")).reverse(),
  javascript: ({ what }) => {
    const each = '@.map((w) => [...w].reverse().join(""))';
    return what === "each" ? each : what === "order" ? "[...@].reverse()" : `${each}.reverse()`;
  },
  python: ({ what }) =>
    what === "each" ? "[w[::-1] for w in @]" : what === "order" ? "@[::-1]" : "[w[::-1] for w in @][::-1]",
  say: ({ what }) =>
    what === "each"
      ? ["spell every word backwards, leaving the words in place", "reverse the letters inside each word"]
      : ["put the words in reverse order", "turn the order of the words around, not their letters"],
  slips: ({ what }) => ({
    "reverses the wrong thing": { what: what === "each" ? "order" : "each" },
    "reverses words and letters": { what: "both" },
  }),
});

const sortWords = defineOp({
  name: "sort-words",
  from: "words",
  to: "words",
  level: 2,
  draw: (rng) => ({ by: pick(rng, ["alphabet", "length"]), tie: true, down: rng.below(2) === 1 }),
  apply: (v: Words, { by, tie, down }) => {
    const text = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
    const sign = down ? -1 : 1;
    if (by === "alphabet") return v.toSorted((a, b) => sign * text(a, b));
    return v.toSorted((a, b) => sign * (a.length - b.length) || (tie ? text(a, b) : 0));
  },
  javascript: ({ by, tie, down }) => {
    const text = "(a < b ? -1 : a > b ? 1 : 0)";
    if (by === "alphabet") return `[...@].sort((a, b) => ${down ? "-" : ""}${text})`;
    return `[...@].sort((a, b) => ${down ? "b.length - a.length" : "a.length - b.length"}${tie ? ` || ${text}` : ""})`;
  },
  python: ({ by, tie, down }) => {
    if (by === "alphabet") return `sorted(@${down ? ", reverse=True" : ""})`;
    const length = down ? "-len(w)" : "len(w)";
    return `sorted(@, key=lambda w: ${tie ? `(${length}, w)` : length})`;
  },
  say: ({ by, down }) =>
    by === "alphabet"
      ? [
          `sort the words by character codes (capitals before small letters), ${down ? "last one first" : "first one first"}`,
          `order the words by ASCII, ${down ? "descending" : "ascending"}`,
        ]
      : [
          `sort the words by length, ${down ? "longest" : "shortest"} first; words of one length by character codes, ascending`,
          `order the words from ${down ? "long to short" : "short to long"}, equally long ones by ASCII`,
        ],
  slips: ({ by, down }) => ({
    "sorts in the wrong direction": { down: !down },
    ...(by === "length" ? { "leaves ties as they stand": { tie: false } } : {}),
    "sorts by something else": { by: by === "length" ? "alphabet" : "length" },
  }),
});

const distinctWords = defineOp({
  name: "distinct-words",
  from: "words",
  to: "words",
  level: 3,
  draw: (rng) => ({ fold: rng.below(2) === 1, keep: "first" }),
  apply: (v: Words, { fold, keep }) => {
    const key = (w: string) => (fold ? w.toLowerCase() : w);
    const keys = v.map(key);
    return v.filter((w, i) => (keep === "first" ? keys.indexOf(key(w)) : keys.lastIndexOf(key(w))) === i);
  },
  javascript: () => "distinct(@)",
  python: () => "distinct(@)",
  helper: ({ fold, keep }) => ({
    javascript: `function distinct(words) {
  const keys = words.map((w) => w${fold ? ".toLowerCase()" : ""});
  return words.filter((w, i) => keys.${keep === "first" ? "indexOf" : "lastIndexOf"}(keys[i]) === i);
}`,
    python: `def distinct(words):
    keys = [w${fold ? ".lower()" : ""} for w in words]
    return [w for i, w in enumerate(words) if keys[i] not in keys[${keep === "first" ? ":i" : "i + 1:"}]]`,
  }),
  say: ({ fold }) =>
    fold
      ? [
          "remove repeated words, where Word and WORD are the same; the first one stays as it is written",
          "keep each word once, its first occurrence, comparing without regard to capitals",
        ]
      : [
          "remove repeated words, keeping the first; Word and WORD are different",
          "keep each word once, at its first place (capitals make a difference)",
        ],
  slips: ({ fold }) => ({
    "treats capitals wrongly": { fold: !fold },
    "keeps the last one": { keep: "last" },
  }),
});

const caesar = defineOp({
  name: "shift-letters",
  from: "words",
  to: "words",
  level: 3,
  draw: (rng) => ({ k: between(rng, 1, 5), wraps: true, capitals: true }),
  apply: (v: Words, p) => v.map((w) => [...w].map((c) => shiftLetter(c, p)).join("")),
  javascript: () => "@.map(shifted)",
  python: () => "[shifted(w) for w in @]",
  helper: ({ k, wraps, capitals }) => ({
    javascript: `function shifted(word) {
  let out = "";
  for (const c of word) {
    const base = c >= "a" && c <= "z" ? 97 : ${capitals ? 'c >= "A" && c <= "Z" ? 65 : 0' : "0"};
    out += base === 0 ? c : String.fromCharCode(base + (c.charCodeAt(0) - base + ${k})${wraps ? " % 26" : ""});
  }
  return out;
}`,
    python: `def shifted(word):
    out = ""
    for c in word:
        base = 97 if "a" <= c <= "z" else ${capitals ? '65 if "A" <= c <= "Z" else 0' : "0"}
        out += c if base == 0 else chr(base + (ord(c) - base + ${k})${wraps ? " % 26" : ""})
    return out`,
  }),
  say: ({ k }) => [
    `move every letter ${k} ${k === 1 ? "place" : "places"} on in the alphabet, z continuing at a; capitals stay capitals, other characters stay as they are`,
    `apply a Caesar shift of ${k} to the letters (small and capital, wrapping round), leaving everything else alone`,
  ],
  slips: ({ k }) => ({
    "does not continue at a": { wraps: false },
    "forgets capital letters": { capitals: false },
    "shifts one place too far": { k: k + 1 },
  }),
});

function shiftLetter(c: string, { k, wraps, capitals }: { k: number; wraps: boolean; capitals: boolean }) {
  const base = c >= "a" && c <= "z" ? 97 : capitals && c >= "A" && c <= "Z" ? 65 : 0;
  if (base === 0) return c;
  const at = c.charCodeAt(0) - base + k;
  return String.fromCharCode(base + (wraps ? at % 26 : at));
}

const measure = defineOp({
  name: "measure-words",
  from: "words",
  to: "numbers",
  level: 1,
  draw: (rng) => ({ what: pick(rng, ["length", "vowels", "capitals"]) }),
  apply: (v: Words, { what }) =>
    v.map((w) => (what === "length" ? w.length : (w.match(COUNTED[what as "vowels"]) ?? []).length)),
  javascript: ({ what }) =>
    what === "length"
      ? "@.map((w) => w.length)"
      : `@.map((w) => (w.match(${COUNTED[what as "vowels"]}) ?? []).length)`,
  python: ({ what }) =>
    what === "length"
      ? "[len(w) for w in @]"
      : `[len(re.findall(r"${COUNTED[what as "vowels"].source}", w)) for w in @]`,
  say: ({ what }) => {
    const name = {
      length: "length",
      vowels: "number of vowels (a, e, i, o, u, small or capital)",
      capitals: "number of capital letters",
    }[what as "length"];
    return [`replace each word by its ${name}`, `turn every word into its ${name}`];
  },
  slips: ({ what }) => ({
    "measures something else": { what: what === "length" ? "vowels" : "length" },
    ...(what === "vowels" ? { "misses capital vowels": { what: "small" } } : {}),
  }),
});
const COUNTED = { vowels: /[aeiouAEIOU]/g, capitals: /[A-Z]/g, small: /[aeiou]/g } as const;

export const WORD_OPS: readonly Op[] = [
  lengthFilter,
  reverseWords,
  sortWords,
  distinctWords,
  caesar,
  measure,
];
