export * from "./chunk-list.ts";
export * from "./media.ts";
export * from "./read-body.ts";
export * from "./refusal.ts";
export * from "./reply-facts.ts";
export * from "./reply-reader.ts";
export * from "./reply-usage.ts";
export * from "./sse.ts";
