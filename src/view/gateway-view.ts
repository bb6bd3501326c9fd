/** Renders the events of a gateway, one line each.
 *  In: an event. Out: text for a terminal. */

import { plural } from "../base/index.ts";
import type { CallEvent, GatewayEvent, RolloutClosedEvent } from "../collect/gateway/index.ts";
import { figure, type Paint, printable, thousands, timeText } from "./format.ts";
import { durationText } from "./rollouts/transcript-view.ts";

export function renderGatewayEvent(event: GatewayEvent, ink: Paint): string {
  const at = ink.dim(timeText(event.atMs).slice(11));
  switch (event.kind) {
    case "refusal":
      return `${at} ${ink.yellow(`${event.status} refused by the gateway`)} ${printable(`${event.rollout ?? event.path} ${event.code}: ${event.message}`)}\n`;
    case "failover":
      return `${at} ${ink.yellow("failover")} ${placeText(event)} ${printable(`${event.from} → ${event.to}: ${event.fault}`)}\n`;
    case "call":
      return `${at} ${statusText(event, ink)} ${placeText(event)} ${printable(callText(event))}\n`;
    case "rollout":
      return `${at} ${ink.dim("closed")} ${printable(event.rollout)} ${printable(rolloutText(event))}\n`;
    default:
      return event satisfies never;
  }
}

function rolloutText(event: RolloutClosedEvent): string {
  const { task, ending, calls, promptTokens, completionTokens, atMs, openedAtMs } = event;
  const tokens = `${thousands(promptTokens)} + ${thousands(completionTokens)} tokens`;
  return [
    ...[`task ${task}`, plural(calls, "call"), tokens, ending],
    durationText(Math.max(0, atMs - openedAtMs)),
  ].join(" · ");
}

function placeText({ rollout, call }: { readonly rollout: string; readonly call: number }): string {
  return printable(`${rollout}.${call}`);
}

function statusText({ status, outcome }: CallEvent, ink: Paint): string {
  if (outcome === "answered") return ink.green(String(status));
  return (outcome === "refused" ? ink.yellow : ink.red)(`${status} ${outcome}`);
}

function callText(event: CallEvent): string {
  const {
    model,
    candidate,
    upstream,
    promptTokens,
    completionTokens,
    costUsd,
    durationMs,
    firstByteMs,
    fault,
  } = event;
  return [
    `${model}${candidate === undefined || candidate === model ? "" : ` → ${candidate}`} at ${upstream}`,
    ...(promptTokens === undefined && completionTokens === undefined
      ? []
      : [`${thousands(promptTokens ?? 0)} + ${thousands(completionTokens ?? 0)} tokens`]),
    ...(costUsd === undefined ? [] : [`$${figure(costUsd)}`]),
    durationText(durationMs),
    ...(firstByteMs === undefined ? [] : [`first byte ${durationText(firstByteMs)}`]),
    ...(fault === undefined ? [] : [fault]),
  ].join(" · ");
}
