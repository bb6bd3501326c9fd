export * from "./explain-policy.ts";
export * from "./usual-request.ts";
