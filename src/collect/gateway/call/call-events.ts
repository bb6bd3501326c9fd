/** What happens at a gateway, for those who watch it: calls as they end, failovers as they happen, rollouts as they are
 *  closed, calls that the gateway itself refuses. Nothing depends on a listener, and a secret never passes here: no event
 *  carries a prompt, a body, or a header other than `traceparent`, and the reason of a refusal is redacted. */
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
      /** The call names no rollout: its rollout has this call only. */
      readonly single?: true;
      readonly dialect: DialectName;
      /** As the client asked for it, or the alias; `candidate` is what a router chose. */
      readonly model: string;
      readonly candidate?: string;
      readonly upstream: string;
      /** The name under which the upstream was asked, and the revision behind it. */
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
      /** Of the request, where it is well-formed (W3C Trace Context, version 00). */
      readonly traceparent?: string;
      /** Why the upstream did not answer. */
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
  /** A rollout that a client opened is closed, and sealed if it had a call. */
  | {
      readonly kind: "rollout";
      readonly atMs: number;
      readonly rollout: string;
      readonly task: string;
      readonly openedAtMs: number;
      readonly ending: CloseReport["ending"]["kind"];
      /** Of an ending that is a failure. */
      readonly owner?: string;
      readonly calls: number;
      readonly promptTokens: number;
      readonly completionTokens: number;
      /** Of its calls whose cost is known; absent where none is. */
      readonly costUsd?: number;
      readonly content?: string;
      readonly envelope?: string;
    }
  | {
      /** Not sent to any upstream and not recorded. */
      readonly kind: "refusal";
      readonly atMs: number;
      readonly path: string;
      /** Absent if the call named none, or if its key was refused. */
      readonly rollout?: string;
      readonly status: number;
      readonly code: string;
      readonly message: string;
    };

export type CallEvent = Extract<GatewayEvent, { kind: "call" }>;
export type RolloutClosedEvent = Extract<GatewayEvent, { kind: "rollout" }>;

/** The decision that led to the candidate that answered. */
interface RouteFacts {
  readonly family: string;
  readonly revision: RevisionKey;
  readonly policy?: RevisionKey;
  readonly reason: DecisionReason;
  readonly probability: number;
  readonly confidence?: number;
  readonly candidates: number;
  /** Candidates that failed before. */
  readonly failed?: readonly string[];
}

export type TellEvent = (event: GatewayEvent) => void;

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** `raw` has names and values in turn. */
export function traceparentOf(raw: readonly string[]): string | undefined {
  for (let i = 0; i < raw.length; i += 2)
    if (raw[i]!.toLowerCase() === "traceparent")
      return TRACEPARENT.test(raw[i + 1]!) ? raw[i + 1] : undefined;
  return undefined;
}
