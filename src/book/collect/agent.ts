/** Resolves the agent of a launch: a path or a URL, a function, or a finished agent object. A function is identified by
 *  its own text. Give an agent that imports modules or closes over values by path instead. */
import { dirname } from "node:path";
import { digestJson } from "../../base/index.ts";
import { queueDriver } from "../../collect/queue/index.ts";
import {
  type Agent,
  type Confinement,
  functionAgent,
  loadAgent,
  type RolloutDefinition,
  type RolloutFunction,
} from "../../collect/rollout/index.ts";
import { ownKeyring } from "../open/index.ts";
import type { PlaceRequest } from "./place.ts";

export type AgentChoice = string | RolloutFunction | RolloutDefinition | Agent;

export async function agentOf(choice: AgentChoice, confinement: Confinement = {}): Promise<Agent> {
  if (typeof choice === "string") return loadAgent(choice, confinement);
  if (typeof choice === "object" && "digest" in choice) return choice;
  const run = typeof choice === "function" ? choice : choice.run;
  const digest = digestJson("rollbook.agent-function.v1", { source: String(run) });
  return functionAgent(choice, { name: run.name || "agent", digest });
}

/** Paths that agents must not see: the book and its queue, the user's keys, and other files that hold answers. */
export function hiddenFrom(
  { book, queue }: Pick<PlaceRequest, "book"> & { queue?: string | undefined },
  ...oracles: string[]
): string[] {
  const root = typeof book === "string" ? book : book.root;
  const files = queue === undefined || queueDriver(queue).isRemote ? [] : [queue];
  return [root, ...files, dirname(ownKeyring().keyPath), ...oracles];
}
