/** Finds the agent that is meant: a path or a URL, a function, or an agent that is made already.
 *  A function is known by its own text: an agent that imports others, or closes over values, is better named by path. */
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

/** What no agent may see: the book and its queue, the user's keys, and whatever else holds answers. */
export function hiddenFrom(
  { book, queue }: Pick<PlaceRequest, "book"> & { queue?: string | undefined },
  ...oracles: string[]
): string[] {
  const root = typeof book === "string" ? book : book.root;
  const files = queue === undefined || queueDriver(queue).isRemote ? [] : [queue];
  return [root, ...files, dirname(ownKeyring().keyPath), ...oracles];
}
