/** What a call is made with: the request as it came in, and what all calls of a gateway share. Types only. */
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

/** What every call of a gateway shares. */
export interface CallContext {
  readonly config: GatewayConfig;
  readonly clock: Clock;
  /** A steady clock in milliseconds, for durations. */
  readonly steadyMs: () => number;
  readonly journal: Journal;
  /** Undefined if nothing is to be redacted. */
  readonly redact: RedactCall | undefined;
  readonly returned: Returned;
  /** Bytes of replies that are passing or not recorded yet. */
  readonly replies: { heldBytes: number };
  readonly rollouts: Rollouts;
  readonly routes: Routes;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** Whether an upstream is left alone for a while, because it keeps failing. */
  readonly isResting: (upstream: string) => boolean;
  readonly metrics: Metrics;
  /** When replies go out that wait for nothing. */
  readonly turnEnd: TurnEnd;
  /** For failures that no caller gets. */
  readonly log: (line: string) => void;
  /** Undefined without a watcher. */
  readonly tell: TellEvent | undefined;
}

export interface IncomingCall {
  readonly dialect: Dialect;
  /** What the client sent; it can be read as a request of the dialect. */
  readonly body: Buffer;
  readonly rawHeaders: readonly string[];
  /** Path and query below /v1. */
  readonly path: string;
  readonly rollout: OpenRollout;
  readonly response: ReplySink;
}
