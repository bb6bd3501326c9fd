export { agentWorld } from "./agent-world.ts";
export { ensureTasks, simWorld } from "./sim-world.ts";
export { type CollectOptions, drawRows, type LoopWorld } from "./world.ts";
