/** Opens a queue on NATS. The client is loaded here, when the first queue on NATS is opened, and not before. */
import { randomUUID } from "node:crypto";
import type { Clock } from "../../base/index.ts";
import { accessFrom, parseNatsUrl } from "./nats/index.ts";
import type { WorkQueue } from "./queue.ts";

export interface NatsQueueSettings {
  readonly clock: Clock;
  /** Milliseconds that a claim lives without a heartbeat (default: 20 000). */
  readonly ttlMs?: number | undefined;
  /** Makes the queue if it is not there (default: true). */
  readonly create?: boolean | undefined;
  /** Milliseconds that the servers may be away before a call fails (default: 60 000). */
  readonly patienceMs?: number | undefined;
  /** Where NATS_USER, NATS_PASSWORD, NATS_TOKEN, NATS_CREDS, NATS_NKEY, NATS_CA, NATS_CERT and NATS_KEY are looked up
   *  (default: the environment of this process). */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Hears of lost and restored connections. */
  readonly log?: ((line: string) => void) | undefined;
}

const PATIENCE_MS = 60_000;

/** `url`: nats://HOST[:PORT][,HOST…][/NAME][?replicas=3&max-items=N]; tls:// insists on an encrypted connection. */
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
