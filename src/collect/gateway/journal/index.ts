export * from "./journal.ts";
export * from "./journal-call.ts";
export * from "./journal-event.ts";
export * from "./journal-reader.ts";
export * from "./journaled-reply.ts";
export * from "./rollouts-held-open.ts";
