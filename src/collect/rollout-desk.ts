/** What a recorder asks of a gateway beside model calls: the bodies and replies of its paths below /v1/rollouts. A program
 *  that holds the gateway asks it directly; others ask over HTTP. */
export interface RolloutDesk {
  open(opening: object): Promise<{ readonly apiKey: string }>;
  status(rollout: string): object;
  close(rollout: string, closing: object): Promise<object>;
}

/** … and model calls, for agents of the same program: recorded as over HTTP, without a connection. */
export interface CallDesk extends RolloutDesk {
  /** Resolves when the whole reply is recorded. Rejects if the gateway breaks the reply off, and with the signal's reason. */
  call(call: DeskCall): Promise<{ readonly status: number; readonly body: Buffer }>;
}

export interface DeskCall {
  /** `/v1/chat/completions` */
  readonly path: string;
  /** Of the rollout. */
  readonly apiKey: string;
  /** JSON. */
  readonly body: string;
  readonly signal?: AbortSignal | undefined;
}
