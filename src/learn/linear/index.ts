export * from "./lbfgs.ts";
export * from "./logistic.ts";
export * from "./ridge-inverse.ts";
export * from "./temperature.ts";
