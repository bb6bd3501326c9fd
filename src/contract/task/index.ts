export * from "./environment.ts";
export * from "./task.ts";
