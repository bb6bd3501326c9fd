export * from "./run-tour.ts";
