export * from "./ask-model.ts";
export * from "./behaviour.ts";
export * from "./chat-agent.ts";
export * from "./recorded.ts";
export * from "./routed-run.ts";
export * from "./run.ts";
