/** Names the families of a loop: of the policies that it trains, and of the choices that its worlds log. */
import { ROUTER_FAMILY } from "../../collect/sim/index.ts";
import type { LoopConfig } from "../config.ts";

/** Family that gateways serve by default. */
const SERVED_FAMILY = "router";

/** Family of the policies that a loop trains, releases and compares with. */
export function policyFamily(world: LoopConfig["world"]): string {
  return (world.kind === "agent" ? world.family : undefined) ?? SERVED_FAMILY;
}

/** Choices of a user's agent are logged as a gateway logs them, so that the commands that read a log find both. */
export function choiceFamily(world: LoopConfig["world"]): string {
  return world.kind === "simulator" ? ROUTER_FAMILY : policyFamily(world);
}
