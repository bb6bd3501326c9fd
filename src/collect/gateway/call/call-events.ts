/** Events of a gateway for listeners: ended calls, failovers, closed rollouts, refused calls. The gateway does not
 *  depend on a listener. Events carry no secret: no prompt, no body, no header other than `traceparent`. The message
 *  of a refusal is redacted. */
import type { RevisionKey } from "../../../contract/index.ts";
import type { DecisionReason } from "../../../policy/index.ts";
import type { DialectName, FinishKind } from "../dialects/index.ts";
import type { CallOutcome } from "../journal/index.ts";
import type { CloseReport } from "../rollouts/index.ts";

export type GatewayEvent =
  | {
      readonly kind: "call";
      readonly atMs: number;
      readonly rollout: string;
      readonly call: number;
      /** True if the call named no rollout. Its rollout then has only this call. */
      readonly single?: true;
      readonly dialect: DialectName;
      /** Model or alias that the client requested. `candidate` is the router's choice. */
      readonly model: string;
      readonly candidate?: string;
      readonly upstream: string;
      /** Model name sent to the upstream, and the revision behind that name. */
      readonly served: string;
      readonly revision?: RevisionKey;
      readonly status: number;
      readonly outcome: CallOutcome;
      readonly durationMs: number;
      readonly firstByteMs?: number;
      readonly promptTokens?: number;
      readonly completionTokens?: number;
      readonly costUsd?: number;
      readonly finish?: FinishKind;
      readonly route?: RouteFacts;
      /** Header of the request, if well-formed (W3C Trace Context, version 00). */
      readonly traceparent?: string;
      /** Reason why the upstream did not answer. */
      readonly fault?: string;
    }
  | {
      readonly kind: "failover";
      readonly atMs: number;
      readonly rollout: string;
      readonly call: number;
      readonly from: string;
      readonly to: string;
      readonly fault: string;
    }
  /** A client's rollout was closed, and sealed if it had a call. */
  | {
      readonly kind: "rollout";
      readonly atMs: number;
      readonly rollout: string;
      readonly task: string;
      readonly openedAtMs: number;
      readonly ending: CloseReport["ending"]["kind"];
      /** Owner of the failure, if the ending is a failure. */
      readonly owner?: string;
      readonly calls: number;
      readonly promptTokens: number;
      readonly completionTokens: number;
      /** Sum over the calls with known cost. Absent if no cost is known. */
      readonly costUsd?: number;
      readonly content?: string;
      readonly envelope?: string;
    }
  | {
      /** The refused call was not sent to any upstream and not recorded. */
      readonly kind: "refusal";
      readonly atMs: number;
      readonly path: string;
      /** Absent if the call named no rollout, or if its key was refused. */
      readonly rollout?: string;
      readonly status: number;
      readonly code: string;
      readonly message: string;
    };

export type CallEvent = Extract<GatewayEvent, { kind: "call" }>;
export type RolloutClosedEvent = Extract<GatewayEvent, { kind: "rollout" }>;

/** The decision that chose the answering candidate. */
interface RouteFacts {
  readonly family: string;
  readonly revision: RevisionKey;
  readonly policy?: RevisionKey;
  readonly reason: DecisionReason;
  readonly probability: number;
  readonly confidence?: number;
  readonly candidates: number;
  /** Candidates that failed before the answering candidate. */
  readonly failed?: readonly string[];
}

export type TellEvent = (event: GatewayEvent) => void;

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** `raw` has names and values alternately. */
export function traceparentOf(raw: readonly string[]): string | undefined {
  for (let i = 0; i < raw.length; i += 2)
    if (raw[i]!.toLowerCase() === "traceparent")
      return TRACEPARENT.test(raw[i + 1]!) ? raw[i + 1] : undefined;
  return undefined;
}
