export * from "./control-api.ts";
export * from "./feedback.ts";
export * from "./identity.ts";
export * from "./redact-requests.ts";
export * from "./requests.ts";
export * from "./server.ts";
