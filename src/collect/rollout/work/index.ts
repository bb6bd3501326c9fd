export * from "./rows.ts";
export * from "./work-item.ts";
