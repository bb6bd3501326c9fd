export {
  type Action,
  actionOfCall,
  actionsInText,
  TEXT_PROTOCOL,
  TOOLS,
  type ToolCall,
  textOfAction,
} from "./actions.ts";
export { type Message, openingMessages, type Protocol, promptOf, routingContext } from "./prompt.ts";
export type {
  Grading,
  GridWorld,
  Mutant,
  Oracle,
  SimTask,
  SolutionFacts,
  Solutions,
  SourceFiles,
  TaskProof,
  VisibleTask,
} from "./sim-task.ts";
export { findCell, walkGrid } from "./walk-grid.ts";
