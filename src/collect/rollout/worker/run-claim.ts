/** Runs one claim of a worker, up to its receipt: the rollout is adopted, run, given up, or released.
 *  In: a claim, and the resources of the worker. Out: an upload to the server, or a failure or release of the claim.
 *  Order of writes: the artifact is durable before the queue is updated. If a worker sealed an artifact and then died,
 *  the artifact is uploaded and not run again. Does not decide when to claim. */
import { type Clock, given, type Id, isRollbookError, parseId, type Rng } from "../../../base/index.ts";
import {
  Assignment,
  Attestation,
  type Ending,
  type FailureOwner,
  type Receipt,
  RolloutContent,
  type Sealed,
  type Signer,
  sampleSeed,
  Task,
} from "../../../contract/index.ts";
import { type BlobStore, readRecord, signedAmong } from "../../../store/index.ts";
import { type Claim, type ClaimKey, MAX_ATTEMPTS } from "../../queue/index.ts";
import { isTaken } from "../../receipt.ts";
import type { Agent } from "../agent/index.ts";
import {
  type Execution,
  executeRollout,
  isNameTaken,
  type Recorded,
  type Recorder,
  type RolloutJob,
} from "../record/index.ts";
import { claimId } from "../work/index.ts";
import type { SignTogether } from "./group-signer.ts";
import type { WorkOrder } from "./plan.ts";
import type { RecentRecords } from "./recent-records.ts";
import type { SealedIndex } from "./sealed-index.ts";
import { checkNamed, INLINE_LIMIT_BYTES, inlineBytes } from "./upload.ts";
import type { WorkerServer } from "./worker-protocol.ts";

/** Maximum attempts by failure owner. A failure of an agent or a task would repeat. */
export type Attempts = Readonly<Record<FailureOwner, number>>;
const ATTEMPTS: Attempts = {
  agent: 1,
  task: 1,
  provider: MAX_ATTEMPTS,
  sandbox: MAX_ATTEMPTS,
  infrastructure: MAX_ATTEMPTS,
};

/** Resources with which a worker runs claims. */
export interface ClaimRunner {
  readonly server: WorkerServer;
  /** Signs registration and uploads. */
  readonly signer: Signer;
  readonly book: Pick<BlobStore, "get" | "put" | "flush">;
  readonly sealed: SealedIndex;
  readonly agent: Agent;
  readonly recorder: Recorder;
  readonly clock: Clock;
  /** Used only for the jitter of retries. */
  readonly rng: Rng;
  readonly name: Id;
  readonly attempts?: Partial<Attempts>;
  readonly retryBaseMs?: number;
  readonly cancelled?: ReadonlySet<string>;
  /** Shared with a server in the same process (default: a new cache). */
  readonly records?: RecentRecords;
  /** Called at the end of each attempt, before it is sealed or given up. Not called for cancelled ones. */
  readonly onAttempt?: ((item: string, ending: Ending) => void) | undefined;
  readonly onReceipt?: (receipt: Sealed<Receipt>) => void;
  readonly log?: (message: string) => void;
}

/** A claim runner that is registered with the worker server. */
export interface RegisteredRunner extends ClaimRunner {
  readonly session: string;
  readonly signTogether: SignTogether;
  readonly records: RecentRecords;
}

const RETRY_BASE_MS = 1_000;
const RETRY_MAX_MS = 60_000;

/** `isKnown`: the book held content under the names of the claim when the claim was made. */
export async function runClaim(
  claim: Claim,
  options: RegisteredRunner,
  { signal, isKnown }: { signal: AbortSignal; isKnown: boolean },
): Promise<void> {
  const { server, session, cancelled, agent, recorder, clock, name, log } = options;
  if (cancelled?.has(claim.item)) {
    await server.fail(session, claim, { message: "cancelled" });
    return;
  }
  try {
    if ((isKnown || claim.token > 1) && (await adoptSealed(claim, options))) return;
    const job = await readJob(claim, options);
    const by = { agent, recorder, clock, worker: name, signal, ...(log === undefined ? {} : { log }) };
    const execution = await executeRollout(job, by);
    await settleClaim(claim, execution, options, signal);
  } catch (error) {
    // Failures around a rollout, not inside it: an unreachable gateway, a missing record. Any other error, such as a
    // failing disk, must stop the worker.
    if (!isRollbookError(error, "failed-infrastructure") && !isRollbookError(error, "missing-blob"))
      throw error;
    if (isNameTaken(error)) return server.release(session, [claim]);
    const ending = { kind: "failed", owner: "infrastructure", message: error.message } as const;
    options.onAttempt?.(claim.item, ending);
    await giveUp(claim, ending, options);
  }
}

/** Uploads an artifact that a worker sealed for this item before it died, if a trusted key signed it. The first claim
 *  of an item can find such an artifact only in the index read at the start. */
async function adoptSealed(claim: Claim, options: RegisteredRunner): Promise<boolean> {
  const { sealed, recorder, book } = options;
  const found = await sealed.find(namesOf(claim, options), {
    fresh: claim.token > 1,
    accept: async (digest) => recorder.isReported?.(await readRecord(book, RolloutContent, digest)) ?? true,
  });
  for (const { content, envelope, attestations } of found)
    for (const attestation of attestations) {
      const { bytes } = (await book.get(attestation))!;
      const upload = { claim: keyOf(claim), content, envelope, attestation: bytes, blobs: [] };
      try {
        noteReceipt(
          claim,
          await options.server.upload(options.session, { ...upload, adopted: true }),
          options,
        );
        return true;
      } catch (error) {
        if (!isRollbookError(error, "bad-signature")) throw error;
      }
    }
  return false;
}

/** Ids under which the book may hold results of the claim's item. */
export function namesOf(
  { item, token }: Claim,
  { recorder }: Pick<ClaimRunner, "recorder">,
): readonly string[] {
  return recorder.namesOf?.(item, token) ?? [item];
}

async function settleClaim(
  claim: Claim,
  execution: Execution,
  options: RegisteredRunner,
  signal: AbortSignal,
): Promise<void> {
  const { server, session, cancelled } = options;
  const { ending } = execution;
  if (signal.aborted) {
    await execution.abandon();
    // Releases the claim, so that it runs after a resume. A lost claim is no longer ours to release.
    if (cancelled?.has(claim.item)) await server.fail(session, claim, { message: "cancelled" });
    else await server.release(session, [claim]);
    return;
  }
  options.onAttempt?.(claim.item, ending);
  if (ending.kind === "failed" && claim.attempt < attemptsFor(options, ending.owner)) {
    await execution.abandon();
    await giveUp(claim, ending, options);
    return;
  }
  // Last check before sealing: a worker that was paused past its claim must not add a second artifact.
  if ((await server.heartbeat(session, [keyOf(claim)])).length > 0) {
    await execution.abandon();
    return;
  }
  noteReceipt(claim, await upload(claim, await execution.seal(), options), options);
}

async function upload(claim: Claim, recorded: Recorded, options: RegisteredRunner): Promise<Sealed<Receipt>> {
  const { server, session, signer, book, signTogether } = options;
  // Inline blobs are not in the book yet. A signature over more of them would name blobs that the book may never hold.
  const attestation =
    recorded.blobs.length === 0
      ? await signTogether(recorded.envelope)
      : signer.attest([recorded.envelope, ...signedAmong(recorded.blobs)]).bytes;
  const whole = { claim: keyOf(claim), ...recorded, attestation };
  if (inlineBytes(whole) <= INLINE_LIMIT_BYTES) return server.upload(session, whole);
  // Too large for one message: put the blobs and the signature into the book, then upload by reference.
  await checkNamed(recorded.blobs, (digest) => book.get(digest));
  for (const { kind, bytes } of recorded.blobs) book.put(kind, bytes);
  book.put(Attestation.kind, attestation);
  await book.flush();
  return server.upload(session, { ...whole, blobs: [] });
}

function noteReceipt(claim: Claim, receipt: Sealed<Receipt>, { onReceipt, log }: ClaimRunner): void {
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
  options: RegisteredRunner,
): Promise<void> {
  const { retryBaseMs = RETRY_BASE_MS, rng } = options;
  const backoffMs = Math.min(RETRY_MAX_MS, retryBaseMs * 2 ** (claim.attempt - 1)) * (0.5 + rng.float());
  const again = claim.attempt < attemptsFor(options, owner);
  options.log?.(`${claim.item}: attempt ${claim.attempt} failed by ${owner}: ${message}`);
  await options.server.fail(options.session, claim, {
    message: `${owner}: ${message}`,
    ...(again ? { retryAfterMs: Math.round(backoffMs) } : {}),
  });
}

function attemptsFor({ attempts }: ClaimRunner, owner: FailureOwner): number {
  return attempts?.[owner] ?? ATTEMPTS[owner] ?? 1;
}

async function readJob(claim: Claim, { records }: RegisteredRunner): Promise<RolloutJob> {
  const order = claim.payload as unknown as WorkOrder;
  const { exp, extra, baseUrl, modelId, overrides, limits, router } = order.extra;
  const assignment = await records.read(Assignment, order.assignment);
  const task = await records.read(Task, assignment.task.digest!);
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
    experiment: parseId(exp),
    ...(router === undefined ? {} : { router }),
    config: {
      required: { exp_id: exp, input_id: task.id },
      ...(extra === undefined ? {} : { extra }),
      endpoint: given({ base_url: baseUrl, model_id: modelId }),
      ...(overrides === undefined ? {} : { overrides }),
    },
    limits: limits ?? {},
  };
}
