/** What a recorder asks of a gateway beside model calls: the bodies and replies of its paths below /v1/rollouts. A program
 *  that holds the gateway asks it directly; others ask over HTTP. */
export interface RolloutDesk {
  open(opening: object): Promise<{ readonly apiKey: string }>;
  status(rollout: string): object;
  close(rollout: string, closing: object): Promise<object>;
}
