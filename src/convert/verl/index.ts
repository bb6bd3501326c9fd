export { verlAgentLoop } from "./verl-agent-loop.ts";
export { verlPrompts } from "./verl-prompts.ts";
