export { agentWorld } from "./agent-world.ts";
export { simWorld } from "./sim-world.ts";
export { type Assigned, type CollectOptions, drawRows, type LoopWorld } from "./world.ts";
