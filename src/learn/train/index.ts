export * from "./bc.ts";
export { type CheckedModel, checkModel } from "./check-model.ts";
export * from "./fit-table.ts";
export * from "./linucb.ts";
export * from "./thompson.ts";
export * from "./ucb1.ts";
