export * from "./domains.ts";
export * from "./query.ts";
export * from "./render-sql.ts";
