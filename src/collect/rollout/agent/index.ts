export * from "./agent.ts";
export * from "./failure.ts";
export * from "./judge-term.ts";
export * from "./load-agent.ts";
export * from "./output.ts";
export { type Confinement, findBubblewrap, ISOLATIONS, type Isolation } from "./pool/index.ts";
export * from "./program.ts";
export * from "./reward.ts";
export * from "./rollout-config.ts";
