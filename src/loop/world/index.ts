export { agentWorld, readRows } from "./agent-world.ts";
export { choiceFamily, policyFamily } from "./families.ts";
export { ensureTasks, requireEngine, simWorld, worldToCome } from "./sim-world.ts";
export {
  type Assigned,
  assignedOf,
  type CollectOptions,
  drawRows,
  type LoopWorld,
  requireTasks,
} from "./world.ts";
