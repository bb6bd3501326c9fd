export * from "./rows.ts";
export * from "./seal-task.ts";
export * from "./work-item.ts";
