/** Inputs of a call: the incoming request, and the parts that all calls of a gateway share. Types only. */
import type { Clock } from "../../../base/index.ts";
import type { GatewayConfig } from "../config.ts";
import type { Dialect } from "../dialects/index.ts";
import type { Journal } from "../journal/index.ts";
import type { Metrics } from "../metrics.ts";
import type { RedactCall } from "../redact/index.ts";
import type { OpenRollout, Rollouts } from "../rollouts/index.ts";
import type { Routes, Upstream } from "../upstream/index.ts";
import type { ReplySink } from "../wire/index.ts";
import type { TellEvent } from "./call-events.ts";
import type { TurnEnd } from "./end-of-tick.ts";
import type { Returned } from "./outgoing.ts";

/** Parts that all calls of a gateway share. */
export interface CallContext {
  readonly config: GatewayConfig;
  readonly clock: Clock;
  /** A monotonic clock in milliseconds, for durations. */
  readonly steadyMs: () => number;
  readonly journal: Journal;
  /** Undefined if redaction is off. */
  readonly redact: RedactCall | undefined;
  readonly returned: Returned;
  /** Bytes of replies that are passing through or not recorded yet. */
  readonly replies: { heldBytes: number };
  readonly rollouts: Rollouts;
  readonly routes: Routes;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** True while the breaker of the upstream is open because the upstream keeps failing. */
  readonly isResting: (upstream: string) => boolean;
  readonly metrics: Metrics;
  /** Releases replies that need not wait for the disk, at the end of the turn. */
  readonly turnEnd: TurnEnd;
  /** Receives failures that no caller gets. */
  readonly log: (line: string) => void;
  /** Undefined without an event listener. */
  readonly tell: TellEvent | undefined;
}

export interface IncomingCall {
  readonly dialect: Dialect;
  /** Body as the client sent it, already checked as a request of the dialect. */
  readonly body: Buffer;
  readonly rawHeaders: readonly string[];
  /** Path and query below /v1. */
  readonly path: string;
  readonly rollout: OpenRollout;
  readonly response: ReplySink;
}
