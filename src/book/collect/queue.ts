/** Opens the queue of a launch: one file in the book, unless another file or a queue on NATS is named. */
import { hostname } from "node:os";
import { join } from "node:path";
import { type Clock, given, type Id, parseId, type Rng, rngFrom } from "../../base/index.ts";
import { CLAIM_TTL_MS, HEARTBEAT_MS, queueDriver, type WorkQueue } from "../../collect/queue/index.ts";
import type { Confinement, GatewayPlace, WorkerOptions } from "../../collect/rollout/index.ts";
import type { AgentChoice } from "./agent.ts";
import type { PlaceRequest } from "./place.ts";

/** Options that a launch shares with its workers in other processes. */
export interface WorkRequest
  extends PlaceRequest,
    Pick<Confinement, "isolation" | "shared" | "hiddenEnv">,
    Partial<Pick<WorkerOptions, "attempts" | "retryBaseMs" | "heartbeatMs" | "rate" | "signal" | "drain">> {
  /** Path of a .js, .mjs, .ts or .py file or of an executable, URL of a server, or a function. */
  readonly agent: AgentChoice;
  /** Number of rollouts that run at the same time in this process (default: 16). */
  readonly concurrency?: number | undefined;
  /** Path of the queue, or nats://HOST[:PORT][,HOST…][/NAME][?replicas=3] (default: queue.db in the book). */
  readonly queue?: string | undefined;
  /** Time after which an unresponsive worker loses its claims (default: 20 s). */
  readonly claimTtlMs?: number | undefined;
  /** Gateway that records model calls; it must write to the same book. */
  readonly gateway?: string | GatewayPlace | undefined;
  /** Name of the worker (default: the host and the process). */
  readonly worker?: string | undefined;
  /** PORT or HOST:PORT of the Prometheus metrics (default: not served). */
  readonly metrics?: string | undefined;
  /** Used only for the jitter of retries. */
  readonly rng?: Rng | undefined;
}

const CONCURRENCY = 16;

type QueueRequest = Pick<WorkRequest, "queue" | "claimTtlMs" | "log">;

/** Refuses an invalid queue name before anything is opened or created. A server is contacted only when the queue is
 *  opened. */
export function checkQueue(
  { queue }: Pick<WorkRequest, "queue">,
  { root, create }: { root: string; create: boolean },
): void {
  const place = queuePlace(root, queue);
  queueDriver(place).check(place, { create });
}

/** Opens the queue of a launch; with `create` false it joins a queue that a launch has created. */
export async function openQueue(
  { queue, claimTtlMs, log }: QueueRequest,
  { root, clock, create }: { root: string; clock: Clock; create: boolean },
): Promise<WorkQueue> {
  const place = queuePlace(root, queue);
  return queueDriver(place).open(place, { clock, ttlMs: claimTtlMs ?? CLAIM_TTL_MS, create, log });
}

function queuePlace(root: string, queue: string | undefined): string {
  return queue ?? join(root, "queue.db");
}

/** Options of this process's worker, with defaults filled in. */
export function workerOptions(request: Omit<WorkRequest, "agent">) {
  const { claimTtlMs = CLAIM_TTL_MS, attempts, retryBaseMs, rate, signal, drain, log } = request;
  return {
    concurrency: request.concurrency ?? CONCURRENCY,
    // Frequent enough for the claims and for the server, which treats a silent worker as dead.
    heartbeatMs: request.heartbeatMs ?? Math.min(HEARTBEAT_MS, claimTtlMs / 2),
    rng: request.rng ?? rngFrom(BigInt(process.pid)),
    ...given({ attempts, retryBaseMs, rate, signal, drain, log }),
  };
}

export function workerName({ worker }: Pick<WorkRequest, "worker">): Id {
  return parseId(worker ?? `${hostname()}-${process.pid}`.replaceAll(/[^A-Za-z0-9_.-]/g, "-"));
}
