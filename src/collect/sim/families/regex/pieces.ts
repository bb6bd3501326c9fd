/** The parts of a code that a regular expression describes. Matching here tracks positions and uses no expression, so
 *  that the reference expression is checked against an independent implementation. */
import type { Rng } from "../../../../base/index.ts";
import { between, pick } from "../family.ts";

export type CharClass = "digit" | "upper" | "lower" | "hex" | "alphanumeric" | "any";

export type Piece =
  | { readonly kind: "literal"; readonly text: string; readonly raw?: true }
  | { readonly kind: "run"; readonly of: CharClass; readonly least: number; readonly most: number }
  | { readonly kind: "choice"; readonly words: readonly string[] }
  | { readonly kind: "range"; readonly low: number; readonly high: number }
  | { readonly kind: "optional"; readonly inner: readonly Piece[] }
  | {
      readonly kind: "list";
      readonly inner: readonly Piece[];
      readonly separator: string;
      readonly most: number;
    };

const CLASSES: Readonly<Record<CharClass, { source: string; has: RegExp; letters: string; say: string }>> = {
  digit: { source: "[0-9]", has: /[0-9]/, letters: "0123456789", say: "digit" },
  upper: { source: "[A-Z]", has: /[A-Z]/, letters: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", say: "capital letter" },
  lower: { source: "[a-z]", has: /[a-z]/, letters: "abcdefghijklmnopqrstuvwxyz", say: "small letter" },
  hex: {
    source: "[0-9a-f]",
    has: /[0-9a-f]/,
    letters: "0123456789abcdef",
    say: "hexadecimal digit (small letters)",
  },
  alphanumeric: { source: "[A-Za-z0-9]", has: /[A-Za-z0-9]/, letters: "aZ0", say: "letter or digit" },
  any: { source: ".", has: /./, letters: "x", say: "character" },
};

export function sourceOf(pieces: readonly Piece[]): string {
  return pieces.map(pieceSource).join("");
}

function pieceSource(piece: Piece): string {
  switch (piece.kind) {
    case "literal":
      return piece.raw ? piece.text : piece.text.replace(/[.*+?^$(){}|[\]\\/]/g, "\\$&");
    case "run":
      return CLASSES[piece.of].source + timesOf(piece.least, piece.most);
    case "choice":
      return `(?:${piece.words.join("|")})`;
    case "range":
      // Numbers without leading zeros, the largest first.
      return `(?:${Array.from({ length: piece.high - piece.low + 1 }, (_, i) => piece.high - i).join("|")})`;
    case "optional":
      return `(?:${sourceOf(piece.inner)})?`;
    case "list": {
      const inner = sourceOf(piece.inner);
      const separator = pieceSource({ kind: "literal", text: piece.separator });
      return `${inner}(?:${separator}${inner}){0,${piece.most - 1}}`;
    }
    default:
      return piece satisfies never;
  }
}

function timesOf(least: number, most: number): string {
  return least === most ? `{${least}}` : `{${least},${most}}`;
}

export function matches(pieces: readonly Piece[], text: string): boolean {
  return ends(pieces, text, new Set([0])).has(text.length);
}

/** True if some part of the text matches, as for an expression without anchors. */
export function matchesInside(pieces: readonly Piece[], text: string): boolean {
  return Array.from({ length: text.length + 1 }, (_, i) => ends(pieces, text, new Set([i]))).some(
    (set) => set.size > 0,
  );
}

function ends(pieces: readonly Piece[], text: string, from: ReadonlySet<number>): Set<number> {
  return pieces.reduce((at, piece) => step(piece, text, at), new Set(from));
}

/** Possible end positions of the piece, for the given start positions. */
function step(piece: Piece, text: string, from: ReadonlySet<number>): Set<number> {
  switch (piece.kind) {
    case "literal":
      return piece.raw ? skip(from, text, { has: /./, least: 1, most: 1 }) : words([piece.text], text, from);
    case "run":
      return skip(from, text, { has: CLASSES[piece.of].has, least: piece.least, most: piece.most });
    case "choice":
      return words(piece.words, text, from);
    case "range":
      return words(
        Array.from({ length: piece.high - piece.low + 1 }, (_, i) => String(piece.low + i)),
        text,
        from,
      );
    case "optional":
      return new Set([...from, ...ends(piece.inner, text, from)]);
    case "list": {
      let last = ends(piece.inner, text, from);
      const all = new Set(last);
      for (let i = 1; i < piece.most; i++) {
        last = ends(piece.inner, text, words([piece.separator], text, last));
        for (const at of last) all.add(at);
      }
      return all;
    }
    default:
      return piece satisfies never;
  }
}

function words(options: readonly string[], text: string, from: ReadonlySet<number>): Set<number> {
  return new Set(
    [...from].flatMap((at) =>
      options.filter((word) => text.startsWith(word, at)).map((word) => at + word.length),
    ),
  );
}

function skip(
  from: ReadonlySet<number>,
  text: string,
  { has, least, most }: { has: RegExp; least: number; most: number },
) {
  const all = new Set<number>();
  for (const start of from) {
    for (let length = 0; length <= most; length++) {
      if (length >= least) all.add(start + length);
      if (!has.test(text[start + length] ?? "")) break;
    }
  }
  return all;
}

export function writeExample(pieces: readonly Piece[], rng: Rng): string {
  return pieces
    .map((piece): string => {
      switch (piece.kind) {
        case "literal":
          return piece.text;
        case "run":
          return Array.from({ length: between(rng, piece.least, piece.most) }, () =>
            pick(rng, [...CLASSES[piece.of].letters]),
          ).join("");
        case "choice":
          return pick(rng, piece.words);
        case "range":
          return String(between(rng, piece.low, piece.high));
        case "optional":
          return rng.below(2) === 0 ? "" : writeExample(piece.inner, rng);
        case "list":
          return Array.from({ length: between(rng, 1, piece.most) }, () =>
            writeExample(piece.inner, rng),
          ).join(piece.separator);
        default:
          return piece satisfies never;
      }
    })
    .join("");
}

export function sayPieces(pieces: readonly Piece[]): string {
  const said = pieces.map(sayPiece);
  return said.length === 1 ? said[0]! : `${said.slice(0, -1).join(", then ")}, and finally ${said.at(-1)}`;
}

function sayPiece(piece: Piece): string {
  switch (piece.kind) {
    case "literal":
      return `the text "${piece.text}"`;
    case "run": {
      const { least, most, of } = piece;
      const many = least === most ? `exactly ${least}` : `${least} to ${most}`;
      return `${many} ${CLASSES[of].say.replace(/^(\w+( \w+)*)/, most === 1 ? "$1" : "$1s")}`;
    }
    case "choice":
      return `one of the words ${piece.words.join(", ")}`;
    case "range":
      return `a number from ${piece.low} to ${piece.high} without leading zeros`;
    case "optional":
      return `optionally (${sayPieces(piece.inner)})`;
    case "list":
      return `1 to ${piece.most} groups separated by "${piece.separator}", where a group is (${sayPieces(piece.inner)})`;
    default:
      return piece satisfies never;
  }
}
