export * from "./breaker.ts";
export * from "./choose.ts";
export * from "./local-upstream.ts";
export * from "./named-routers.ts";
export * from "./routes.ts";
export * from "./targets.ts";
export * from "./upstream.ts";
