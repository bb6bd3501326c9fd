export * from "./actions.ts";
export * from "./prompt.ts";
export * from "./sim-task.ts";
export * from "./walk-grid.ts";
