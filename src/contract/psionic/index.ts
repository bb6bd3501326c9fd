export * from "./artifact.ts";
export * from "./batch.ts";
export * from "./convert-artifact.ts";
export * from "./convert-revision.ts";
export * from "./json.ts";
export * from "./schema.ts";
