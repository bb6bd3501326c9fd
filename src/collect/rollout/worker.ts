/** A worker: registers, claims work, runs it, uploads what came of it, gets receipts. Stateless: it may die at any
 *  moment, and another goes on. In: a desk, a book, an agent. Out: sealed rollouts in the book, receipts for them.
 *  Order of truth: the artifact is durable before the queue hears of it; a worker that finds an artifact sealed by one
 *  that died in between uploads that and does not run the rollout again. Speaks to the queue through the desk alone. */
import type { Clock } from "../../base/clock.ts";
import { type Digest, isDigest } from "../../base/digest.ts";
import { isRollbookError, RollbookError } from "../../base/errors.ts";
import { type Id, parseId } from "../../base/ids.ts";
import type { Rng } from "../../base/rng.ts";
import {
  Assignment,
  Attestation,
  type FailureOwner,
  openRecord,
  type Receipt,
  type RecordOf,
  type RecordType,
  RolloutContent,
  type Sealed,
  type Signer,
  sampleSeed,
  Task,
} from "../../contract/index.ts";
import type { BlobStore } from "../../store/index.ts";
import { isTaken } from "../admission.ts";
import { type Claim, type ClaimKey, HEARTBEAT_MS, MAX_ATTEMPTS, type WorkQueue } from "../queue/queue.ts";
import type { Agent } from "./agent.ts";
import { type Execution, executeRollout, type RolloutJob } from "./executor.ts";
import { laneOf, type WorkOrder } from "./plan.ts";
import { makeRateLimit } from "./rate-limit.ts";
import type { Recorded, Recorder } from "./recorder.ts";
import type { SealedIndex } from "./sealed-index.ts";
import { INLINE_LIMIT_BYTES, inlineBytes } from "./upload.ts";
import { claimId } from "./work-item.ts";
import type { WorkerDesk } from "./worker-protocol.ts";
import { makeRegistration } from "./worker-registration.ts";

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
  readonly desk: WorkerDesk;
  /** Signs registration and uploads. */
  readonly signer: Signer;
  /** Only to hear of new work, and of its end. */
  readonly queue: Pick<WorkQueue, "watch" | "counts">;
  readonly book: Pick<BlobStore, "get" | "put" | "flush">;
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
  readonly onReceipt?: (receipt: Sealed<Receipt>) => void;
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
  const running: Running = new Map();
  return {
    ended: join(options).then((at) => work(at, running)),
    cancel: (item) => running.get(item)?.stop.abort(),
  };
}

type Running = Map<string, { key: ClaimKey; stop: AbortController; done: Promise<void> }>;

/** A worker that the desk knows. */
interface Joined extends WorkerOptions {
  readonly session: string;
}

async function join(options: WorkerOptions): Promise<Joined> {
  const { desk, signer, name, clock } = options;
  return { ...options, ...desk.register(makeRegistration(signer, name, clock.nowMs())) };
}

async function work(options: Joined, running: Running): Promise<void> {
  const { queue, concurrency, signal, heartbeatMs = HEARTBEAT_MS } = options;
  const lane = laneOf(options.agent.digest);
  const watch = queue.watch();
  const rate = makeRateLimit(options.clock, options.rate);
  let fault: { error: unknown } | undefined;
  let busyAtMs = options.clock.nowMs();
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
      const room = Math.min(concurrency - running.size, rate.available());
      const claims = room > 0 ? await claimSome(options, room, lane) : [];
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

/** A process that stood still for too long has to show that it lives before it may claim. */
async function claimSome({ desk, session }: Joined, limit: number, lane: string): Promise<Claim[]> {
  try {
    return await desk.claim(session, { limit, lane });
  } catch (error) {
    if (!isRollbookError(error, "stale-heartbeat")) throw error;
    await desk.heartbeat(session, []);
    return [];
  }
}

async function beat({ desk, session }: Joined, running: Running): Promise<void> {
  const lost = await desk.heartbeat(
    session,
    [...running.values()].map(({ key }) => key),
  );
  for (const { item, token } of lost) {
    const known = running.get(item);
    if (known?.key.token === token) known.stop.abort();
  }
}

async function runClaim(claim: Claim, options: Joined, signal: AbortSignal): Promise<void> {
  const { desk, session, cancelled } = options;
  if (cancelled?.has(claim.item)) {
    await desk.fail(session, claim, { message: "cancelled" });
    return;
  }
  if (await adoptSealed(claim, options)) return;
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

/** Uploads what a worker that died in between had sealed for this item, if a trusted key signed it. The first claim of
 *  all can find it only at the start. */
async function adoptSealed(claim: Claim, options: Joined): Promise<boolean> {
  const { sealed, recorder, book } = options;
  const ids = recorder.namesOf?.(claim.item, claim.token) ?? [claim.item];
  const found = await sealed.find(ids, {
    fresh: claim.token > 1,
    accept: async (digest) => recorder.isReported?.(await readRecord(book, RolloutContent, digest)) ?? true,
  });
  for (const { content, envelope, attestations } of found)
    for (const attestation of attestations) {
      const { bytes } = (await book.get(attestation))!;
      const upload = { claim: keyOf(claim), content, envelope, attestation: bytes, blobs: [] };
      try {
        noteReceipt(claim, await options.desk.upload(options.session, { ...upload, adopted: true }), options);
        return true;
      } catch (error) {
        if (!isRollbookError(error, "bad-signature")) throw error;
      }
    }
  return false;
}

async function settleClaim(
  claim: Claim,
  execution: Execution,
  options: Joined,
  signal: AbortSignal,
): Promise<void> {
  const { desk, session, cancelled } = options;
  const { ending } = execution;
  if (signal.aborted) {
    await execution.abandon();
    // Given back, so that whoever resumes runs it; a claim that was lost is not ours to give.
    if (cancelled?.has(claim.item)) await desk.fail(session, claim, { message: "cancelled" });
    else await desk.release(session, [claim]);
    return;
  }
  if (ending.kind === "failed" && claim.attempt < attemptsFor(options, ending.owner)) {
    await execution.abandon();
    await giveUp(claim, ending, options);
    return;
  }
  // The last look before sealing: a worker that slept past its time must not put a second artifact beside another's.
  if ((await desk.heartbeat(session, [keyOf(claim)])).length > 0) {
    await execution.abandon();
    return;
  }
  noteReceipt(claim, await upload(claim, await execution.seal(), options), options);
}

async function upload(claim: Claim, recorded: Recorded, options: Joined): Promise<Sealed<Receipt>> {
  const { desk, session, signer, book } = options;
  const attestation = signer.attest([recorded.envelope]).bytes;
  const whole = { claim: keyOf(claim), ...recorded, attestation };
  if (inlineBytes(whole) <= INLINE_LIMIT_BYTES) return desk.upload(session, whole);
  // Too large for one message: into the book with its signature, then by name.
  for (const { kind, bytes } of recorded.blobs) book.put(kind, bytes);
  book.put(Attestation.kind, attestation);
  await book.flush();
  return desk.upload(session, { ...whole, blobs: [] });
}

function noteReceipt(claim: Claim, receipt: Sealed<Receipt>, { onReceipt, log }: WorkerOptions): void {
  const { outcome, message } = receipt.record;
  if (!isTaken(outcome)) log?.(`${claim.item}: ${outcome}: ${message}; the first result stands`);
  onReceipt?.(receipt);
}

function keyOf({ item, token }: Claim): ClaimKey {
  return { item, token };
}

async function giveUp(
  claim: Claim,
  { owner, message }: { owner: FailureOwner; message: string },
  options: Joined,
): Promise<void> {
  const { retryBaseMs = RETRY_BASE_MS, rng } = options;
  const backoffMs = Math.min(RETRY_MAX_MS, retryBaseMs * 2 ** (claim.attempt - 1)) * (0.5 + rng.float());
  const again = claim.attempt < attemptsFor(options, owner);
  options.log?.(`${claim.item}: attempt ${claim.attempt} failed by ${owner}: ${message}`);
  await options.desk.fail(options.session, claim, {
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
