export * from "./loop-transition.ts";
