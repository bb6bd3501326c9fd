export * from "./check-gateway-book.ts";
export * from "./executor.ts";
export * from "./gateway-recorder.ts";
export * from "./recorder.ts";
