export { bugfixFamily } from "./bugfix.ts";
export { implementFamily } from "./implement.ts";
export { defineOp, type Op } from "./op.ts";
export { evaluate, mistakesIn, type Pipeline, render, type Step, sayPipeline } from "./pipeline.ts";
