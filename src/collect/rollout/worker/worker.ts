/** A worker: registers, claims work and keeps its claims alive while they run. It is stateless: it may die at any
 *  moment, and another worker continues. In: a server, a book, an agent. Out: sealed rollouts in the book, receipts for
 *  them. run-claim.ts handles one claim. Uses the queue only through the worker server, except for watching and
 *  counts. */
import { isRollbookError } from "../../../base/index.ts";
import type { Book } from "../../../store/index.ts";
import { type Claim, type ClaimKey, HEARTBEAT_MS, type WorkQueue } from "../../queue/index.ts";
import { claimId } from "../work/index.ts";
import { makeGroupSigner } from "./group-signer.ts";
import { laneOf } from "./plan.ts";
import { makeRateLimit } from "./rate-limit.ts";
import { RecentRecords } from "./recent-records.ts";
import { type ClaimRunner, namesOf, type RegisteredRunner, runClaim } from "./run-claim.ts";
import { makeRegistration } from "./worker-registration.ts";

export interface WorkerOptions extends ClaimRunner {
  /** Used only to learn of new work, and of an empty queue. */
  readonly queue: Pick<WorkQueue, "watch" | "counts">;
  readonly book: Pick<Book, "id" | "root" | "get" | "put" | "flush">;
  readonly concurrency: number;
  readonly heartbeatMs?: number;
  /** Maximum number of rollouts begun per second. */
  readonly rate?: number;
  /** Stops the worker: running rollouts are cancelled and their claims released. */
  readonly signal: AbortSignal;
  /** Once aborted, the worker claims nothing more and ends when its running rollouts are done. */
  readonly drain?: AbortSignal | undefined;
  /** Ends the worker if the queue is empty, or has had no work for this agent for this long. Absent: never. */
  readonly idleMs?: number;
}

const NONE: ReadonlySet<string> = new Set();
/** Polling interval for work that becomes ready with time (a retry, an expired claim). */
const ASK_MS = 250;

export interface Worker {
  /** Resolves when the worker has ended and holds no claims. Rejects if it could not continue. */
  readonly ended: Promise<void>;
  /** Cancels one rollout, if this worker runs it. */
  cancel(item: string): void;
}

export function startWorker(options: WorkerOptions): Worker {
  const running: Running = new Map();
  return {
    ended: join(options).then((at) => work(at, running)),
    cancel(item) {
      for (const { key, stop } of running.values()) if (key.item === item) stop.abort();
    },
  };
}

/** Keyed by claim, not by item: a rollout whose claim was lost may still run when its item is claimed again. */
type Running = Map<string, { key: ClaimKey; stop: AbortController; done: Promise<void> }>;

/** A worker that is registered with the worker server. */
type Joined = WorkerOptions & RegisteredRunner;

async function join(options: WorkerOptions): Promise<Joined> {
  const { server, signer, name, clock, recorder, book } = options;
  await recorder.checkBook?.(book);
  const registered = server.register(makeRegistration(signer, name, clock.nowMs()));
  const records = options.records ?? new RecentRecords(book);
  return { ...options, ...registered, records, signTogether: makeGroupSigner(signer) };
}

async function work(options: Joined, running: Running): Promise<void> {
  const { queue, concurrency, signal, heartbeatMs = HEARTBEAT_MS } = options;
  const lane = laneOf(options.agent.digest);
  const watch = queue.watch();
  const rate = makeRateLimit(options.clock, options.rate);
  let fault: { error: unknown } | undefined;
  let busyAtMs = options.clock.nowMs();
  // One shared notification: waiting on hundreds of promises again after each end costs more than a short rollout.
  let ring = () => {};
  const hasEnded = () =>
    new Promise<void>((resolve) => {
      ring = resolve;
    });
  let changed: Promise<unknown> | undefined;
  const keepAlive = setInterval(() => {
    void beat(options, running).catch((error: unknown) => {
      fault ??= { error };
    });
  }, heartbeatMs);
  const stopAll = () => {
    for (const { stop } of running.values()) stop.abort();
  };
  signal.addEventListener("abort", stopAll, { once: true });
  try {
    while (!signal.aborted && fault === undefined) {
      const drained = options.drain?.aborted === true;
      if (drained && running.size === 0) break;
      const room = drained ? 0 : Math.min(concurrency - running.size, rate.available());
      const claims = room > 0 ? await claimSome(options, room, lane) : [];
      rate.take(claims.length);
      const known =
        claims.length === 0 ? NONE : options.sealed.among(claims.flatMap((each) => namesOf(each, options)));
      for (const claim of claims) {
        const stop = new AbortController();
        if (signal.aborted) stop.abort();
        const isKnown = namesOf(claim, options).some((name) => known.has(name));
        const done = runClaim(claim, options, { signal: stop.signal, isKnown })
          .catch((error: unknown) => {
            fault ??= { error };
          })
          .finally(() => {
            running.delete(claimId(claim));
            ring();
          });
        running.set(claimId(claim), { key: { item: claim.item, token: claim.token }, stop, done });
      }
      if (claims.length > 0 || running.size > 0) busyAtMs = options.clock.nowMs();
      if (claims.length > 0) continue;
      if (running.size === 0 && (await isDrained(options, busyAtMs))) break;
      changed ??= watch.changed(ASK_MS).finally(() => {
        changed = undefined;
      });
      await Promise.race([changed, hasEnded()]);
    }
  } finally {
    stopAll();
    await Promise.all([...running.values()].map(({ done }) => done));
    clearInterval(keepAlive);
    signal.removeEventListener("abort", stopAll);
  }
  if (fault !== undefined) throw fault.error;
}

async function isDrained({ queue, idleMs, clock }: WorkerOptions, busyAtMs: number): Promise<boolean> {
  if (idleMs === undefined) return false;
  const { waiting, claimed } = await queue.counts();
  return waiting + claimed === 0 || clock.nowMs() - busyAtMs >= idleMs;
}

/** A process that was paused for too long must send a heartbeat before it may claim. */
async function claimSome({ server, session }: Joined, limit: number, lane: string): Promise<Claim[]> {
  try {
    return await server.claim(session, { limit, lane });
  } catch (error) {
    if (!isRollbookError(error, "stale-heartbeat")) throw error;
    await server.heartbeat(session, []);
    return [];
  }
}

async function beat({ server, session }: Joined, running: Running): Promise<void> {
  const lost = await server.heartbeat(
    session,
    [...running.values()].map(({ key }) => key),
  );
  for (const claim of lost) running.get(claimId(claim))?.stop.abort();
}
