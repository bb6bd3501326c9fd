/** The queue of a launch: one file in the book, unless another file or a queue on NATS is named. */
import { hostname } from "node:os";
import { join } from "node:path";
import { type Clock, given, type Id, parseId, type Rng, rngFrom } from "../../base/index.ts";
import { CLAIM_TTL_MS, HEARTBEAT_MS, queueDriver, type WorkQueue } from "../../collect/queue/index.ts";
import type { Confinement, GatewayPlace, WorkerOptions } from "../../collect/rollout/index.ts";
import type { AgentChoice } from "./agent.ts";
import type { PlaceRequest } from "./place.ts";

/** What a launch and its workers in other processes have in common. */
export interface WorkRequest
  extends PlaceRequest,
    Pick<Confinement, "isolation" | "shared" | "hiddenEnv">,
    Partial<Pick<WorkerOptions, "attempts" | "retryBaseMs" | "heartbeatMs" | "rate" | "signal" | "drain">> {
  /** A .js, .mjs, .ts or .py file, an executable, a server's URL, or a function. */
  readonly agent: AgentChoice;
  /** How many run at a time in this process (default: 16). */
  readonly concurrency?: number | undefined;
  /** The file of the queue, or nats://HOST[:PORT][,HOST…][/NAME][?replicas=3] (default: queue.db in the book). */
  readonly queue?: string | undefined;
  /** After this long a silent worker loses its claims (default: 20 s). */
  readonly claimTtlMs?: number | undefined;
  /** Records model calls; it must write to the same book. */
  readonly gateway?: string | GatewayPlace | undefined;
  /** Default: the host and the process. */
  readonly worker?: string | undefined;
  /** Serves Prometheus metrics at PORT or HOST:PORT (default: nowhere). */
  readonly metrics?: string | undefined;
  /** Only for the jitter of retries. */
  readonly rng?: Rng | undefined;
}

const CONCURRENCY = 16;

type QueueRequest = Pick<WorkRequest, "queue" | "claimTtlMs" | "log">;

/** Refuses what cannot be a queue before anything is opened or made for it. A server is asked only when it is opened. */
export function checkQueue(
  { queue }: Pick<WorkRequest, "queue">,
  { root, create }: { root: string; create: boolean },
): void {
  const place = queuePlace(root, queue);
  queueDriver(place).check(place, { create });
}

/** Opens the queue of a launch; `create` false: joins one that a launch has made. */
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

/** Options of the worker in this process that have defaults. */
export function workerOptions(request: Omit<WorkRequest, "agent">) {
  const { claimTtlMs = CLAIM_TTL_MS, attempts, retryBaseMs, rate, signal, drain, log } = request;
  return {
    concurrency: request.concurrency ?? CONCURRENCY,
    // Often enough for the claims and for the server, which takes a silent worker for dead.
    heartbeatMs: request.heartbeatMs ?? Math.min(HEARTBEAT_MS, claimTtlMs / 2),
    rng: request.rng ?? rngFrom(BigInt(process.pid)),
    ...given({ attempts, retryBaseMs, rate, signal, drain, log }),
  };
}

export function workerName({ worker }: Pick<WorkRequest, "worker">): Id {
  return parseId(worker ?? `${hostname()}-${process.pid}`.replaceAll(/[^A-Za-z0-9_.-]/g, "-"));
}
