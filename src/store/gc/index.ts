export * from "./erase.ts";
export * from "./gc.ts";
