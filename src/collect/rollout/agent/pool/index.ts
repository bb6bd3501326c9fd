export {
  type Confinement,
  confined,
  environmentFor,
  findBubblewrap,
  ISOLATIONS,
  type Isolation,
} from "./confine.ts";
export { badAgent, importAgent, isModule } from "./import-agent.ts";
export { pooledAgent } from "./process-pool.ts";
export { lineSplitter } from "./wire.ts";
