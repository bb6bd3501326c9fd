export * from "./find.ts";
export * from "./slot.ts";
