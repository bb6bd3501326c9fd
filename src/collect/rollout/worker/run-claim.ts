/** One claim of a worker, from the claim to its receipt: adopted, run, given up, or given back.
 *  In: a claim, and what the worker has. Out: an upload to the server, or word that there will be none.
 *  Order of truth: the artifact is durable before the queue hears of it; what a worker that died in between had sealed is
 *  uploaded, not run again. Decides nothing about when to claim. */
import { type Clock, given, type Id, isRollbookError, parseId, type Rng } from "../../../base/index.ts";
import {
  Assignment,
  Attestation,
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

/** Attempts by who is to blame. What an agent or a task does wrong it does again. */
export type Attempts = Readonly<Record<FailureOwner, number>>;
const ATTEMPTS: Attempts = {
  agent: 1,
  task: 1,
  provider: MAX_ATTEMPTS,
  sandbox: MAX_ATTEMPTS,
  infrastructure: MAX_ATTEMPTS,
};

/** What a worker has to run claims with. */
export interface ClaimRunner {
  readonly server: WorkerServer;
  /** Signs registration and uploads. */
  readonly signer: Signer;
  readonly book: Pick<BlobStore, "get" | "put" | "flush">;
  readonly sealed: SealedIndex;
  readonly agent: Agent;
  readonly recorder: Recorder;
  readonly clock: Clock;
  /** Only for the jitter of retries. */
  readonly rng: Rng;
  readonly name: Id;
  readonly attempts?: Partial<Attempts>;
  readonly retryBaseMs?: number;
  readonly cancelled?: ReadonlySet<string>;
  /** Shared with the server, where it is of this process (default: its own). */
  readonly records?: RecentRecords;
  readonly onReceipt?: (receipt: Sealed<Receipt>) => void;
  readonly log?: (message: string) => void;
}

/** … once the worker server knows the worker. */
export interface RegisteredRunner extends ClaimRunner {
  readonly session: string;
  readonly signTogether: SignTogether;
  readonly records: RecentRecords;
}

const RETRY_BASE_MS = 1_000;
const RETRY_MAX_MS = 60_000;

/** `isKnown`: the book had something under the names of the claim when it was made. */
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
    // What breaks around a rollout, not in it: a gateway that is away, a record that is missing. A disk that fails
    // must stop the worker.
    if (!isRollbookError(error, "failed-infrastructure") && !isRollbookError(error, "missing-blob"))
      throw error;
    if (isNameTaken(error)) await server.release(session, [claim]);
    else await giveUp(claim, { owner: "infrastructure", message: error.message }, options);
  }
}

/** Uploads what a worker that died in between had sealed for this item, if a trusted key signed it. The first claim of
 *  all can find it only at the start. */
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

/** Under which ids the book may hold results of the claim's item. */
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
    // Given back, so that it runs after a resume; a claim that was lost is not ours to give.
    if (cancelled?.has(claim.item)) await server.fail(session, claim, { message: "cancelled" });
    else await server.release(session, [claim]);
    return;
  }
  if (ending.kind === "failed" && claim.attempt < attemptsFor(options, ending.owner)) {
    await execution.abandon();
    await giveUp(claim, ending, options);
    return;
  }
  // The last look before sealing: a worker that slept past its time must not put a second artifact beside another's.
  if ((await server.heartbeat(session, [keyOf(claim)])).length > 0) {
    await execution.abandon();
    return;
  }
  noteReceipt(claim, await upload(claim, await execution.seal(), options), options);
}

async function upload(claim: Claim, recorded: Recorded, options: RegisteredRunner): Promise<Sealed<Receipt>> {
  const { server, session, signer, book, signTogether } = options;
  // What comes inline is not in the book yet: a signature over more of it would name what the book may never hold.
  const attestation =
    recorded.blobs.length === 0
      ? await signTogether(recorded.envelope)
      : signer.attest([recorded.envelope, ...signedAmong(recorded.blobs)]).bytes;
  const whole = { claim: keyOf(claim), ...recorded, attestation };
  if (inlineBytes(whole) <= INLINE_LIMIT_BYTES) return server.upload(session, whole);
  // Too large for one message: into the book with its signature, then by name.
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
