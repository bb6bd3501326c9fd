export * from "./loop-transition.ts";
export * from "./run-pack.ts";
