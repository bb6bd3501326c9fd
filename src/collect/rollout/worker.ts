/** A worker: claims work, runs it, seals it, says so. Stateless: it may die at any moment, and another goes on.
 *  In: a queue, a book, an agent. Out: sealed rollouts in the book, their digests in the queue.
 *  Order of truth: the artifact is durable before the queue hears of it; a worker that finds an artifact sealed by one
 *  that died in between reports it and does not run the rollout again. Does not enqueue. */
import type { Clock } from "../../base/clock.ts";
import { type Digest, isDigest } from "../../base/digest.ts";
import { isRollbookError, RollbookError } from "../../base/errors.ts";
import { type Id, parseId } from "../../base/ids.ts";
import type { Rng } from "../../base/rng.ts";
import {
  Assignment,
  type FailureOwner,
  openRecord,
  type RecordOf,
  type RecordType,
  RolloutContent,
  sampleSeed,
  Task,
} from "../../contract/index.ts";
import type { BlobStore } from "../../store/index.ts";
import { type Claim, type ClaimKey, HEARTBEAT_MS, MAX_ATTEMPTS, type WorkQueue } from "../queue/queue.ts";
import type { Agent } from "./agent.ts";
import { type Execution, executeRollout, type RolloutJob } from "./executor.ts";
import { laneOf, type WorkOrder } from "./plan.ts";
import { makeRateLimit } from "./rate-limit.ts";
import type { Recorder } from "./recorder.ts";
import type { SealedIndex } from "./sealed-index.ts";
import { claimId } from "./work-item.ts";

/** Attempts by who is to blame. What an agent or a task does wrong it does again. */
export type Attempts = Readonly<Record<FailureOwner, number>>;
export const ATTEMPTS: Attempts = {
  agent: 1,
  task: 1,
  provider: MAX_ATTEMPTS,
  sandbox: MAX_ATTEMPTS,
  infrastructure: MAX_ATTEMPTS,
};

export interface WorkerOptions {
  readonly queue: WorkQueue;
  readonly book: Pick<BlobStore, "get">;
  readonly sealed: SealedIndex;
  readonly agent: Agent;
  readonly recorder: Recorder;
  readonly clock: Clock;
  /** Only for the jitter of retries. */
  readonly rng: Rng;
  readonly name: Id;
  readonly concurrency: number;
  readonly attempts?: Partial<Attempts>;
  readonly retryBaseMs?: number;
  readonly heartbeatMs?: number;
  /** Rollouts begun per second, at most. */
  readonly rate?: number;
  /** Stops: what runs is cancelled and given back. */
  readonly signal: AbortSignal;
  /** Ends when the queue has nothing left for anyone, or nothing for this agent for so long; absent: never. */
  readonly idleMs?: number;
  readonly cancelled?: ReadonlySet<string>;
  readonly log?: (message: string) => void;
}

const RETRY_BASE_MS = 1_000;
const RETRY_MAX_MS = 60_000;
/** What becomes ready by waiting (a retry, an expired claim) is found by asking again this often. */
const ASK_MS = 250;

export interface Worker {
  /** Resolves when the worker has ended and holds nothing; rejects if it could not go on. */
  readonly ended: Promise<void>;
  /** Cancels one rollout if it runs here. */
  cancel(item: string): void;
}

export function startWorker(options: WorkerOptions): Worker {
  const running = new Map<string, { key: ClaimKey; stop: AbortController; done: Promise<void> }>();
  return {
    ended: work(options, running),
    cancel: (item) => running.get(item)?.stop.abort(),
  };
}

type Running = Map<string, { key: ClaimKey; stop: AbortController; done: Promise<void> }>;

async function work(options: WorkerOptions, running: Running): Promise<void> {
  const { queue, name, concurrency, signal, heartbeatMs = HEARTBEAT_MS } = options;
  const lane = laneOf(options.agent.digest);
  const watch = queue.watch();
  const rate = makeRateLimit(options.clock, options.rate);
  let fault: { error: unknown } | undefined;
  let busyAtMs = options.clock.nowMs();
  const keepAlive = setInterval(() => {
    void beat(queue, running).catch((error: unknown) => {
      fault ??= { error };
    });
  }, heartbeatMs);
  const stopAll = () => {
    for (const { stop } of running.values()) stop.abort();
  };
  signal.addEventListener("abort", stopAll, { once: true });
  try {
    while (!signal.aborted && fault === undefined) {
      const room = Math.min(concurrency - running.size, rate.available());
      const claims = room > 0 ? await queue.claim(name, room, { lane }) : [];
      rate.take(claims.length);
      for (const claim of claims) {
        const stop = new AbortController();
        if (signal.aborted) stop.abort();
        const done = runClaim(claim, options, stop.signal)
          .catch((error: unknown) => {
            fault ??= { error };
          })
          .finally(() => running.delete(claim.item));
        running.set(claim.item, { key: { item: claim.item, token: claim.token }, stop, done });
      }
      if (claims.length > 0 || running.size > 0) busyAtMs = options.clock.nowMs();
      if (claims.length > 0) continue;
      if (running.size === 0 && (await isDrained(options, busyAtMs))) break;
      await Promise.race([watch.changed(ASK_MS), ...[...running.values()].map(({ done }) => done)]);
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

async function beat(queue: WorkQueue, running: Running): Promise<void> {
  if (running.size === 0) return;
  const lost = await queue.heartbeat([...running.values()].map(({ key }) => key));
  for (const { item, token } of lost) {
    const known = running.get(item);
    if (known?.key.token === token) known.stop.abort();
  }
}

async function runClaim(claim: Claim, options: WorkerOptions, signal: AbortSignal): Promise<void> {
  const { queue, cancelled } = options;
  if (cancelled?.has(claim.item)) {
    await queue.fail(claim, { message: "cancelled" });
    return;
  }
  const known = await findSealed(claim, options);
  if (known !== undefined) {
    await queue.complete(claim, known);
    return;
  }
  try {
    const job = await readJob(claim, options);
    const execution = await executeRollout(job, { ...options, worker: options.name, signal });
    await settleClaim(claim, execution, options, signal);
  } catch (error) {
    // What breaks around a rollout, not in it: a gateway that is away, a record that is missing. A disk that fails
    // must stop the worker.
    if (!isRollbookError(error, "failed-infrastructure") && !isRollbookError(error, "missing-blob"))
      throw error;
    await giveUp(claim, { owner: "infrastructure", message: error.message }, options);
  }
}

/** What a worker that died in between had sealed for this item. The first claim of all can find it only at the start. */
async function findSealed(claim: Claim, options: WorkerOptions): Promise<Digest | undefined> {
  const { sealed, recorder, book } = options;
  const ids = recorder.namesOf?.(claim.item, claim.token) ?? [claim.item];
  return sealed.find(ids, {
    fresh: claim.token > 1,
    accept: async (digest) => recorder.isReported?.(await readRecord(book, RolloutContent, digest)) ?? true,
  });
}

async function settleClaim(
  claim: Claim,
  execution: Execution,
  options: WorkerOptions,
  signal: AbortSignal,
): Promise<void> {
  const { queue, cancelled } = options;
  const { ending } = execution;
  if (signal.aborted) {
    await execution.abandon();
    // Given back, so that whoever resumes runs it; a claim that was lost is not ours to give.
    if (cancelled?.has(claim.item)) await queue.fail(claim, { message: "cancelled" });
    else await queue.release([claim]);
    return;
  }
  if (ending.kind === "failed" && claim.attempt < attemptsFor(options, ending.owner)) {
    await execution.abandon();
    await giveUp(claim, ending, options);
    return;
  }
  // The last look before sealing: a worker that slept past its time must not put a second artifact beside another's.
  if ((await queue.heartbeat([claim])).length > 0) {
    await execution.abandon();
    return;
  }
  const outcome = await queue.complete(claim, await execution.seal());
  if (outcome.outcome === "conflict" || outcome.outcome === "expired")
    options.log?.(
      `${claim.item}: the claim was lost while it was sealed (${outcome.outcome}); the first result stands`,
    );
}

async function giveUp(
  claim: Claim,
  { owner, message }: { owner: FailureOwner; message: string },
  options: WorkerOptions,
): Promise<void> {
  const { retryBaseMs = RETRY_BASE_MS, rng } = options;
  const backoffMs = Math.min(RETRY_MAX_MS, retryBaseMs * 2 ** (claim.attempt - 1)) * (0.5 + rng.float());
  const again = claim.attempt < attemptsFor(options, owner);
  options.log?.(`${claim.item}: attempt ${claim.attempt} failed by ${owner}: ${message}`);
  await options.queue.fail(claim, {
    message: `${owner}: ${message}`,
    ...(again ? { retryAfterMs: Math.round(backoffMs) } : {}),
  });
}

function attemptsFor({ attempts }: WorkerOptions, owner: FailureOwner): number {
  return attempts?.[owner] ?? ATTEMPTS[owner] ?? 1;
}

async function readJob(claim: Claim, { book }: WorkerOptions): Promise<RolloutJob> {
  const order = claim.payload as unknown as WorkOrder;
  const { exp, extra, baseUrl, modelId, overrides, limits } = order.extra;
  const assignment = await readRecord(book, Assignment, order.assignment);
  const task = await readRecord(book, Task, assignment.task.digest!);
  return {
    rolloutId: parseId(claim.item),
    task,
    taskDigest: assignment.task.digest!,
    assignment: { digest: order.assignment, sample: order.sample },
    ...(assignment.group === undefined ? {} : { group: assignment.group }),
    seed: sampleSeed(order.assignment, order.sample),
    attempt: claim.attempt,
    claim: parseId(claimId(claim)),
    token: claim.token,
    config: {
      required: { exp_id: exp, input_id: task.id },
      ...(extra === undefined ? {} : { extra }),
      endpoint: {
        ...(baseUrl === undefined ? {} : { base_url: baseUrl }),
        ...(modelId === undefined ? {} : { model_id: modelId }),
      },
      ...(overrides === undefined ? {} : { overrides }),
    },
    limits: limits ?? {},
  };
}

export async function readRecord<T extends RecordType>(
  book: Pick<BlobStore, "get">,
  type: T,
  digest: Digest,
): Promise<RecordOf<T>> {
  const blob = isDigest(digest) ? await book.get(digest) : undefined;
  if (blob !== undefined) return openRecord(type, blob.bytes, digest);
  throw new RollbookError(
    "missing-blob",
    { digest, kind: type.kind },
    `${type.kind} ${digest} is not in the book. Give the worker the book that the launch writes to.`,
  );
}
