export * from "./redact.ts";
export * from "./redact-call.ts";
export * from "./secrets.ts";
