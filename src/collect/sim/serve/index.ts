export * from "./chat-wire.ts";
export * from "./loopback.ts";
export * from "./model-server.ts";
export * from "./recording.ts";
