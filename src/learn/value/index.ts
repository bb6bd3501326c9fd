export * from "./train-value.ts";
