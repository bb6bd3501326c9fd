/** What happens at a gateway, told to whoever watches it: calls as they end, failovers as they happen. Nothing depends on
 *  a listener, and a secret never passes here: no event carries a message, a header or a body. */
import type { CallOutcome } from "../journal/index.ts";

export type GatewayEvent =
  | {
      readonly kind: "call";
      readonly atMs: number;
      readonly rollout: string;
      readonly call: number;
      /** As the client asked for it, or the alias; `candidate` is what a router chose. */
      readonly model: string;
      readonly candidate?: string;
      readonly upstream: string;
      readonly status: number;
      readonly outcome: CallOutcome;
      readonly durationMs: number;
      readonly firstByteMs?: number;
      readonly promptTokens?: number;
      readonly completionTokens?: number;
      readonly costUsd?: number;
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
    };

export type TellEvent = (event: GatewayEvent) => void;
