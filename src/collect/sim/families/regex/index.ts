export { countShapes, drawPieces, slipsIn } from "./draw-pieces.ts";
export { matches, matchesInside, type Piece, sayPieces, sourceOf, writeExample } from "./pieces.ts";
