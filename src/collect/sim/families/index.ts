export * from "./families.ts";
export * from "./family.ts";
