/** The families of a loop: of the policies that it trains, and of the choices that its worlds log. */
import { ROUTER_FAMILY } from "../../collect/sim/index.ts";
import type { LoopConfig } from "../config.ts";

/** The family of the policies that a loop trains, and that gateways serve unless told. */
export const POLICY_FAMILY = "router";

/** The choices of a user's agent are logged as every gateway logs them, so that the commands that read a log find both. */
export function choiceFamily({ kind }: LoopConfig["world"]): string {
  return kind === "simulator" ? ROUTER_FAMILY : POLICY_FAMILY;
}
