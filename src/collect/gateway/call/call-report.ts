/** Builds the event of an ended call. In: an ended call. Out: an event for listeners. Pure. */
import { given } from "../../../base/index.ts";
import { type FinishKind, finishKind, type TokenUsage } from "../dialects/index.ts";
import type { CallOutcome } from "../journal/index.ts";
import { isSingle } from "../rollouts/index.ts";
import type { ReplyReader } from "../wire/index.ts";
import type { IncomingCall } from "./call-context.ts";
import { type CallEvent, traceparentOf } from "./call-events.ts";
import type { CallTarget } from "./call-target.ts";

/** A longer reply in one piece is not parsed for a listener, because calls would wait for the parser. */
const MAX_TOLD_BYTES = 1024 * 1024;

interface EndedCall {
  readonly incoming: IncomingCall;
  readonly aimed: CallTarget;
  readonly place: Pick<CallEvent, "atMs" | "rollout" | "call">;
  /** Undefined if no reply was read to its end. */
  readonly reader: ReplyReader | undefined;
  readonly status: number;
  readonly outcome: CallOutcome;
  readonly durationMs: number;
  readonly firstByteMs: number | undefined;
  readonly usage: TokenUsage | undefined;
  readonly costUsd: number | undefined;
  readonly fault: string | undefined;
}

export function callEvent(call: EndedCall): CallEvent {
  const { incoming, aimed, place, status, outcome, durationMs, firstByteMs, usage, costUsd, fault } = call;
  const { upstream, model: served, revision } = aimed.target;
  const { dialect, rollout, rawHeaders } = incoming;
  return {
    ...{ kind: "call", ...place, dialect: dialect.name, model: aimed.asked, upstream, served },
    ...{ status, outcome, durationMs },
    ...(aimed.candidate === "" ? {} : { candidate: aimed.candidate }),
    ...(isSingle(rollout) ? { single: true } : {}),
    ...given({ firstByteMs, costUsd, fault, revision }),
    ...given({ promptTokens: usage?.promptTokens, completionTokens: usage?.completionTokens }),
    ...given({ finish: finishTold(call), route: aimed.route(), traceparent: traceparentOf(rawHeaders) }),
  };
}

function finishTold({ reader, status, incoming }: EndedCall): FinishKind | undefined {
  if (reader === undefined || status >= 400) return undefined;
  if (reader.form === "json" && reader.bytes > MAX_TOLD_BYTES) return undefined;
  const { finishReason } = reader.finish().reply;
  return finishReason === undefined ? undefined : finishKind(finishReason, incoming.dialect);
}
