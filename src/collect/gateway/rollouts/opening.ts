/** How a rollout begins: what was asked for, and for the rest what the configuration says. Pure. */
import { canonicalize, digestJson, type Id, parseId } from "../../../base/index.ts";
import { SINGLE_TASK } from "../../../contract/index.ts";
import type { GatewayConfig } from "../config.ts";
import type { OpenedEvent } from "../journal/index.ts";
import type { OpenRollout } from "./open-rollout.ts";

/** What the opener of a rollout may say of it. */
export type WantedOpening = Partial<Omit<OpenedEvent, "kind" | "worker" | "atMs">>;

const UNNAMED_TASK = parseId("unnamed");

export function makeOpening(
  id: string,
  wanted: WantedOpening,
  { rollouts, gatewayName, atMs }: { rollouts: GatewayConfig["rollouts"]; gatewayName: Id; atMs: number },
): OpenedEvent {
  const { environment, dataSource, maxTurns, budgetUsd } = rollouts;
  return {
    kind: "opened",
    worker: gatewayName,
    environment: environment as OpenedEvent["environment"],
    task: { id: UNNAMED_TASK },
    seed: BigInt(`0x${digestJson("rollbook.gateway-seed.v1", id).slice(7, 23)}`),
    dataSource,
    ...(maxTurns === undefined ? {} : { maxTurns }),
    ...(budgetUsd === undefined ? {} : { budgetUsd }),
    ...wanted,
    atMs,
  };
}

/** Of a call that belongs to no rollout. */
export function singleOpening(...at: Parameters<typeof makeOpening>): OpenedEvent {
  return { ...makeOpening(...at), task: { id: SINGLE_TASK } };
}

export function isSingle({ opening }: Pick<OpenRollout, "opening">): boolean {
  return opening.task.id === SINGLE_TASK;
}

/** Whether two openings ask for the same, whenever they did. */
export function sameOpening(a: OpenedEvent, b: OpenedEvent): boolean {
  const text = (each: OpenedEvent) => canonicalize({ ...each, seed: String(each.seed), atMs: 0 });
  return text(a) === text(b);
}
