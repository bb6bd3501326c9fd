/** Finds the agent that is meant: a path or a URL, a function, or an agent that is made already.
 *  A function is known by its own text: an agent that imports others, or closes over values, is better named by path. */
import { digestJson } from "../../base/index.ts";
import {
  type Agent,
  functionAgent,
  loadAgent,
  type RolloutDefinition,
  type RolloutFunction,
} from "../../collect/rollout/index.ts";

export type AgentChoice = string | RolloutFunction | RolloutDefinition | Agent;

export async function agentOf(choice: AgentChoice): Promise<Agent> {
  if (typeof choice === "string") return loadAgent(choice);
  if (typeof choice === "object" && "digest" in choice) return choice;
  const run = typeof choice === "function" ? choice : choice.run;
  const digest = digestJson("rollbook.agent-function.v1", { source: String(run) });
  return functionAgent(choice, { name: run.name || "agent", digest });
}
