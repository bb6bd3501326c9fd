/** Operations of a gateway besides model calls: the bodies and replies of its paths below /v1/rollouts. A program
 *  that holds the gateway calls it directly; other programs use HTTP. */
export interface RolloutDesk {
  open(opening: object): Promise<{ readonly apiKey: string }>;
  status(rollout: string): object;
  close(rollout: string, closing: object): Promise<object>;
}

/** Rollout operations and model calls, for agents of the same program. Calls are recorded as over HTTP, without a
 *  connection. */
export interface CallDesk extends RolloutDesk {
  /** Resolves when the whole reply is recorded. Rejects if the gateway cuts the reply, or with the reason of the
   *  signal. */
  call(call: DeskCall): Promise<{ readonly status: number; readonly body: Buffer }>;
}

export interface DeskCall {
  /** For example `/v1/chat/completions`. */
  readonly path: string;
  /** API key of the rollout. */
  readonly apiKey: string;
  /** The request as JSON text. */
  readonly body: string;
  readonly signal?: AbortSignal | undefined;
}
