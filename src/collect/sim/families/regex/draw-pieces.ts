/** Draws codes to describe, and wrong expressions for each code. */
import type { Rng } from "../../../../base/index.ts";
import { between, type Difficulty, pick, sample } from "../family.ts";
import type { CharClass, Piece } from "./pieces.ts";

type Kind = "run" | "choice" | "range" | "optional" | "list";

const PLAN: Readonly<Record<Difficulty, { parts: number; kinds: readonly Kind[] }>> = {
  1: { parts: 1, kinds: ["run", "choice"] },
  2: { parts: 2, kinds: ["run", "choice"] },
  3: { parts: 3, kinds: ["run", "choice", "range", "optional"] },
  4: { parts: 4, kinds: ["run", "range", "optional", "list"] },
  5: { parts: 5, kinds: ["range", "optional", "list", "choice", "run"] },
};

/** Parts with a separator between them: without a separator, two adjacent runs would merge. */
export function drawPieces(rng: Rng, difficulty: Difficulty): Piece[] {
  const { parts, kinds } = PLAN[difficulty];
  const pieces: Piece[] = rng.below(2) === 0 ? [{ kind: "literal", text: pick(rng, PREFIXES) }] : [];
  for (let i = 0; i < parts; i++) {
    if (i > 0) pieces.push({ kind: "literal", text: pick(rng, SEPARATORS) });
    pieces.push(drawPiece(rng, pick(rng, kinds)));
  }
  return pieces;
}

export function countShapes(): number {
  // Factor 2: with or without a prefix. Then one kind per part.
  return Object.values(PLAN).reduce((sum, { parts, kinds }) => sum + 2 * kinds.length ** parts, 0);
}

function drawPiece(rng: Rng, kind: Kind): Piece {
  switch (kind) {
    case "run": {
      const least = between(rng, 1, 3);
      return { kind, of: pick(rng, RUNS), least, most: least + pick(rng, [0, 0, 1, 2]) };
    }
    case "choice":
      return { kind, words: sample(rng, WORDS, between(rng, 2, 4)).sort() };
    case "range": {
      const low = between(rng, 0, 5);
      return { kind, low, high: low + between(rng, 6, 20) };
    }
    case "optional":
      return { kind, inner: [{ kind: "literal", text: pick(rng, ["~", "=", "'"]) }, drawPiece(rng, "run")] };
    case "list":
      return {
        kind,
        inner: [drawPiece(rng, "run")],
        separator: pick(rng, [",", ";", "|"]),
        most: between(rng, 2, 4),
      };
    default:
      return kind satisfies never;
  }
}

interface PieceSlip {
  readonly flaw: string;
  readonly pieces: readonly Piece[];
}

export function slipsIn(pieces: readonly Piece[]): PieceSlip[] {
  return pieces.flatMap((piece, i) =>
    slipsOf(piece).map(({ flaw, to }) => ({ flaw, pieces: pieces.toSpliced(i, 1, ...to) })),
  );
}

function slipsOf(piece: Piece): { flaw: string; to: Piece[] }[] {
  switch (piece.kind) {
    case "literal":
      return piece.text === "."
        ? [{ flaw: "does not escape the dot", to: [{ ...piece, raw: true }] }]
        : [{ flaw: "makes a fixed text optional", to: [{ kind: "optional", inner: [piece] }] }];
    case "run":
      return [
        { flaw: "allows one character too many", to: [{ ...piece, most: piece.most + 1 }] },
        {
          flaw: "asks for one character too many",
          to: [{ ...piece, least: piece.least + 1, most: piece.most + 1 }],
        },
        { flaw: "allows too many kinds of characters", to: [{ ...piece, of: "alphanumeric" }] },
      ];
    case "choice":
      return [
        { flaw: "forgets one of the words", to: [{ ...piece, words: piece.words.slice(0, -1) }] },
        { flaw: "allows any word", to: [{ kind: "run", of: "lower", least: 1, most: 9 }] },
      ];
    case "range":
      return [
        { flaw: "stops one short of the largest number", to: [{ ...piece, high: piece.high - 1 }] },
        { flaw: "checks the number of digits only", to: [{ kind: "run", of: "digit", least: 1, most: 2 }] },
      ];
    case "optional":
      return [
        { flaw: "insists on the optional part", to: [...piece.inner] },
        { flaw: "does not know the optional part", to: [] },
      ];
    case "list":
      return [
        { flaw: "allows one group too few", to: [{ ...piece, most: piece.most - 1 }] },
        { flaw: "allows one group only", to: [...piece.inner] },
        { flaw: "allows groups without end", to: [{ ...piece, most: piece.most + 5 }] },
      ];
    default:
      return piece satisfies never;
  }
}

const RUNS: readonly CharClass[] = ["digit", "upper", "lower", "hex"];
const PREFIXES = ["ID", "#", "v", "no", "Ref:"];
const SEPARATORS = ["-", ".", "/", ":", "_", "+"];
const WORDS = ["red", "blue", "green", "north", "south", "east", "west", "new", "old"];
