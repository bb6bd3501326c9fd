/** Builds the opening event of a rollout. In: the request and the configured defaults. Out: the opening. Pure. */
import { canonicalize, digestJson, type Id, parseId } from "../../../base/index.ts";
import { SINGLE_TASK } from "../../../contract/index.ts";
import type { GatewayConfig } from "../config.ts";
import type { OpenedEvent } from "../journal/index.ts";
import type { OpenRollout } from "./open-rollout.ts";

/** Fields that the opener of a rollout may set. */
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

/** The opening of a call without a rollout. */
export function singleOpening(...at: Parameters<typeof makeOpening>): OpenedEvent {
  return { ...makeOpening(...at), task: { id: SINGLE_TASK } };
}

export function isSingle({ opening }: Pick<OpenRollout, "opening">): boolean {
  return opening.task.id === SINGLE_TASK;
}

/** True if two openings are equal except for their times. */
export function sameOpening(a: OpenedEvent, b: OpenedEvent): boolean {
  const text = (each: OpenedEvent) => canonicalize({ ...each, seed: String(each.seed), atMs: 0 });
  return text(a) === text(b);
}
