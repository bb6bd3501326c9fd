/** Tasks that ask for a regular expression from examples and a description. JavaScript. */
import type { Json, Rng } from "../../../base/index.ts";
import { type Args, type CodeCandidate, codeTask } from "./code-task.ts";
import { between, type Family, pick } from "./family.ts";
import {
  countShapes,
  drawPieces,
  matches,
  matchesInside,
  type Piece,
  sayPieces,
  slipsIn,
  sourceOf,
  writeExample,
} from "./regex/index.ts";

export const regexFromExamples: Family = {
  name: "regex-from-examples",
  language: "javascript",
  summary: "write a regular expression that accepts exactly the described codes",
  grows:
    "1 to 5 parts; number ranges, optional parts and repeated groups; near misses among the hidden texts",
  structures: countShapes(),
  draw(rng, difficulty) {
    const pieces = drawPieces(rng, difficulty);
    const good = Array.from({ length: 30 }, () => writeExample(pieces, rng));
    const bad = good.map((text) => spoil(rng, text));
    const intro = pick(rng, INTROS);
    const [yes, no] = [good.slice(0, 3), bad.filter((text) => !matches(pieces, text)).slice(0, 3)].map(
      (texts) => [...new Set(texts)].map(quoted).join(", "),
    );
    const statement = [
      intro,
      `A valid code consists of ${sayPieces(pieces)}. Nothing may stand before or after it.`,
      `Valid: ${yes}. Not valid: ${no}.`,
      pick(rng, OUTROS),
    ].join("\n\n");
    return codeTask({
      language: "javascript",
      functionName: "accepted",
      statement: () => statement,
      evaluate: accepting((text) => matches(pieces, text)),
      reference: moduleOf(`^${sourceOf(pieces)}$`),
      start: { source: moduleOf("^$"), evaluate: accepting((text) => text === "") },
      mistakes: mistakes(pieces),
      plain: groups(rng, [...good.slice(3, 12), ...bad.slice(3, 6), "hello", "12"], 3),
      edges: [
        [[""]],
        [[good[0]!.toLowerCase(), good[1]!.toUpperCase()]],
        ...groups(
          rng,
          [...good.slice(12), ...bad.slice(6), ...bad.slice(6).map((text) => spoil(rng, text))],
          3,
        ),
      ],
      visibleCases: 2,
    });
  },
};

function mistakes(pieces: readonly Piece[]): CodeCandidate[] {
  const anchored = slipsIn(pieces).map(({ flaw, pieces: wrong }) => ({
    flaw,
    source: moduleOf(`^${sourceOf(wrong)}$`),
    evaluate: accepting((text) => matches(wrong, text)),
  }));
  return [
    ...anchored,
    {
      flaw: "accepts texts that only contain a code",
      source: moduleOf(sourceOf(pieces)),
      evaluate: accepting((text) => matchesInside(pieces, text)),
    },
    { flaw: "accepts everything", source: moduleOf("^.*$"), evaluate: accepting(() => true) },
  ];
}

function accepting(test: (text: string) => boolean): (args: Args) => Json {
  return ([texts]) => (texts as string[]).filter(test);
}

function moduleOf(source: string): string {
  return `export const pattern = /${source}/;

export function accepted(texts) {
  return texts.filter((text) => pattern.test(text));
}
`;
}

/** Makes one small change, so that the text is nearly valid (or occasionally still valid). */
function spoil(rng: Rng, text: string): string {
  const at = rng.below(Math.max(1, text.length));
  const swap = (c: string) => (c === c.toUpperCase() ? c.toLowerCase() : c.toUpperCase());
  const ways = [
    () => text.slice(0, at) + text.slice(at + 1),
    () => text.slice(0, at) + text.slice(at, at + 1) + text.slice(at),
    () => `${text}${pick(rng, ["x", "0", " ", "-"])}`,
    () => `${pick(rng, ["x", "0", " ", "_"])}${text}`,
    () => text.slice(0, at) + swap(text.slice(at, at + 1)) + text.slice(at + 1),
    () => text.slice(0, at) + pick(rng, ["#", "9", "q", ".", "Z"]) + text.slice(at + 1),
    () => text.replace(/[0-9]+/, (digits) => String(Number(digits) + between(rng, 1, 20))),
    () => text.replace(/[-.:/_+,;|]/, pick(rng, ["", "-", ".", "!", "--"])),
  ];
  return pick(rng, ways)();
}

function groups(rng: Rng, texts: readonly string[], size: number): Args[] {
  const mixed = rng.shuffle([...texts]);
  return Array.from({ length: Math.floor(mixed.length / size) }, (_, i) => [
    mixed.slice(i * size, (i + 1) * size),
  ]);
}

function quoted(text: string): string {
  return `\`${text}\``;
}

const INTROS = [
  "Write a regular expression, `pattern` in `solution.mjs`, that tells valid codes from invalid ones.",
  "Our form accepts codes it should refuse. Put a correct regular expression into `pattern` in `solution.mjs`.",
  "`solution.mjs` filters texts with a regular expression called `pattern`, which so far matches nothing of use. Replace it.",
  "Find the regular expression behind these examples and make it `pattern` in `solution.mjs`.",
];
const OUTROS = [
  "Leave `accepted` as it is: it returns the texts that match.",
  "Only `pattern` has to change; `accepted` uses it.",
  "Capitals and small letters are different. `accepted` applies the pattern and stays as it is.",
];
