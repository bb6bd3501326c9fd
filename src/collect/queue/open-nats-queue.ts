/** Opens a queue on NATS. In: a URL, settings. Out: a WorkQueue. Loads the client only when the first queue on NATS
 *  is opened. */
import { randomUUID } from "node:crypto";
import type { Clock } from "../../base/index.ts";
import { accessFrom, parseNatsUrl } from "./nats/index.ts";
import type { WorkQueue } from "./queue.ts";

export interface NatsQueueSettings {
  readonly clock: Clock;
  /** Milliseconds that a claim stays valid without a heartbeat (default: 20 000). */
  readonly ttlMs?: number | undefined;
  /** Creates the queue if it does not exist (default: true). */
  readonly create?: boolean | undefined;
  /** Milliseconds that the servers may be away before a call fails (default: 60 000). */
  readonly patienceMs?: number | undefined;
  /** Source of NATS_USER, NATS_PASSWORD, NATS_TOKEN, NATS_CREDS, NATS_NKEY, NATS_CA, NATS_CERT and NATS_KEY
   *  (default: the environment of this process). */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Receives a line for every lost and restored connection. */
  readonly log?: ((line: string) => void) | undefined;
}

const PATIENCE_MS = 60_000;

/** `url`: nats://HOST[:PORT][,HOST…][/NAME][?replicas=3&max-items=N]; tls:// requires an encrypted connection. */
export async function openNatsQueue(url: string, settings: NatsQueueSettings): Promise<WorkQueue> {
  const {
    clock,
    ttlMs,
    create = true,
    patienceMs = PATIENCE_MS,
    env = process.env,
    log = () => {},
  } = settings;
  const place = parseNatsUrl(url);
  const { openQueueOnNats } = await import("./nats/nats-queue.ts");
  return openQueueOnNats({
    ...{ place, access: accessFrom(env), clock, ttlMs, create, patienceMs, log },
    writer: randomUUID(),
  });
}
