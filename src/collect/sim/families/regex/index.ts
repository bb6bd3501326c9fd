export * from "./draw-pieces.ts";
export * from "./pieces.ts";
