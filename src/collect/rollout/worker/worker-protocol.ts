/** The worker protocol: register → claim → heartbeat → upload → receipt, over any queue and any book.
 *  In: requests of workers. Out: claims, and for every upload a sealed receipt that is durable before it is returned.
 *  A structural fault (forged digest, another worker's claim, an artifact for another task) is an error with a code.
 *  An upload that is late, repeated or too large gets a receipt with that outcome. Runs no rollouts, opens no sockets.
 *  Order of writes: artifact, then the queue's mark, then the receipt. A crash between them loses no accepted rollout
 *  and accepts none twice: an item is accepted once the queue marks it as done. */
import { type Clock, type Digest, parseId, RollbookError } from "../../../base/index.ts";
import {
  type PublicKey,
  type Receipt,
  RolloutContent,
  RolloutEnvelope,
  type Sealed,
  type Signer,
} from "../../../contract/index.ts";
import { type Blob, type BlobStore, makeSealer, readRecord } from "../../../store/index.ts";
import type { Claim, ClaimKey, FailOutcome, WorkQueue } from "../../queue/index.ts";
import { type Admission, type Admit, STORED, sealReceipt } from "../../receipt.ts";
import { claimId } from "../work/index.ts";
import {
  checkAlive,
  checkHolder,
  checkLane,
  checkNamedClaim,
  checkUpload,
  checkWorker,
} from "./claim-checks.ts";
import { GroupSignatures } from "./group-signatures.ts";
import { RecentRecords } from "./recent-records.ts";
import { INLINE_LIMIT_BYTES, inlineBytes, openUpload, type Upload } from "./upload.ts";
import { checkRegistration, type RegisteredWorker, type Registration } from "./worker-registration.ts";

export interface WorkerServerOptions {
  queue: WorkQueue;
  book: Pick<BlobStore, "put" | "flush" | "get" | "has">;
  clock: Clock;
  /** True for keys that may register. */
  trusts: (key: PublicKey) => boolean;
  /** Returns a new, unguessable name for each registration. */
  newSession: () => string;
  /** Judges stored artifacts. Without it, receipts say "stored". */
  admit?: Admit | undefined;
  /** Signs receipts. */
  signer?: Signer;
  /** True if this process sealed the artifact of that envelope (default: always false). */
  sealedHere?: ((envelope: Digest) => boolean) | undefined;
  /** Shared with other readers of the same records (default: a new cache). */
  records?: RecentRecords;
}

interface ClaimRequest {
  limit: number;
  lane?: string;
  /** Claims one item by name, instead of any item of a lane. */
  item?: string;
}

/** Every call except `register` names the session that `register` returned. */
export interface WorkerServer {
  register(registration: Registration): { session: string };
  claim(session: string, request: ClaimRequest): Promise<Claim[]>;
  /** Called every HEARTBEAT_MS, even without claims. Returns the lost claims. */
  heartbeat(session: string, claims: readonly ClaimKey[]): Promise<ClaimKey[]>;
  upload(session: string, upload: Upload): Promise<Sealed<Receipt>>;
  fail(
    session: string,
    claim: ClaimKey,
    reason: { message: string; retryAfterMs?: number },
  ): Promise<FailOutcome>;
  release(session: string, claims: readonly ClaimKey[]): Promise<void>;
  /** For the owner of the queue: issues the receipt of a done item again, after a crash lost it. */
  reissue(item: string): Promise<Sealed<Receipt>>;
}

export function makeWorkerServer(options: WorkerServerOptions): WorkerServer {
  const { queue, clock, trusts, newSession } = options;
  const receipts = makeSealer(options.book, options.signer);
  const receiver = {
    ...options,
    signatures: new GroupSignatures(options.book),
    records: options.records ?? new RecentRecords(options.book),
  };
  const workers = new Map<string, RegisteredWorker>();
  const find = (session: string) => checkWorker(workers.get(session));
  const keep = async (admission: Admission, at: Omit<Parameters<typeof sealReceipt>[1], "atMs">) => {
    const receipt = sealReceipt(admission, { ...at, atMs: clock.nowMs() });
    await receipts.add({ envelope: receipt, blobs: [...(admission.records ?? []), receipt] });
    return receipt;
  };
  const checkOwn = async (worker: RegisteredWorker, claims: readonly ClaimKey[]) => {
    for (const claim of claims) checkHolder(worker, claim, await queue.state(claim.item));
  };

  return {
    register(registration) {
      const worker = checkRegistration(registration, { nowMs: clock.nowMs(), trusts });
      // Keeps one session per worker and key: the newest.
      for (const [session, { holder }] of workers) if (holder === worker.holder) workers.delete(session);
      const session = newSession();
      workers.set(session, worker);
      return { session };
    },
    async claim(session, { limit, lane, item }) {
      const worker = find(session);
      const nowMs = clock.nowMs();
      checkAlive(worker, nowMs);
      if (item !== undefined) checkNamedClaim({ worker, item, state: await queue.state(item), nowMs });
      if (lane !== undefined) checkLane(worker, lane);
      const from = item !== undefined ? { item } : lane !== undefined ? { lane } : undefined;
      const claims = await queue.claim(worker.holder, limit, from);
      return claims.map((claim) => ({ ...claim, worker: worker.id }));
    },
    async heartbeat(session, claims) {
      const worker = find(session);
      workers.set(session, { ...worker, seenAtMs: clock.nowMs() });
      if (claims.length === 0) return [];
      const lost = (await queue.heartbeat(claims.map((claim) => heldBy(worker, claim)))).map(keyOf);
      await checkOwn(worker, lost);
      return lost;
    },
    async upload(session, upload) {
      const worker = find(session);
      const at = { subject: upload.content, worker: worker.id, claim: claimId(upload.claim) };
      return receive(receiver, { worker, upload }, (admission) => keep(admission, at));
    },
    async fail(session, claim, reason) {
      const worker = find(session);
      await checkOwn(worker, [claim]);
      return queue.fail(heldBy(worker, claim), reason);
    },
    async release(session, claims) {
      const worker = find(session);
      await checkOwn(worker, claims);
      await queue.release(claims.map((claim) => heldBy(worker, claim)));
    },
    async reissue(item) {
      const { envelope, content, digest } = await openDone(options, item);
      const admission =
        (await options.admit?.({ content, envelope, digest, nowMs: clock.nowMs() })) ?? STORED;
      return keep(admission, { subject: digest, worker: envelope.worker, claim: envelope.claim });
    },
  };
}

/** The claim, with the holder name that the queue uses. */
function heldBy(worker: RegisteredWorker, { item, token }: ClaimKey): ClaimKey {
  return { item, token, worker: worker.holder };
}

function keyOf({ item, token }: ClaimKey): ClaimKey {
  return { item, token };
}

interface Submission {
  worker: RegisteredWorker;
  upload: Upload;
}

type GiveReceipt = (admission: Admission) => Promise<Sealed<Receipt>>;

async function receive(
  options: WorkerServerOptions & { signatures: GroupSignatures; records: RecentRecords },
  submission: Submission,
  answer: GiveReceipt,
): Promise<Sealed<Receipt>> {
  const { queue, book, clock } = options;
  const { worker, upload } = submission;
  const { claim, envelope, content: digest } = upload;
  const state = await queue.state(claim.item);
  const standing = checkUpload({ worker, claim, envelope, state, nowMs: clock.nowMs() });
  if (standing.standing !== "active")
    return answer({ outcome: standing.standing, signals: [], message: standing.message });
  const bytes = inlineBytes(upload);
  if (bytes > INLINE_LIMIT_BYTES) return answer(oversize(bytes));
  const opened = await openUpload(upload, {
    worker,
    attempt: standing.attempt,
    trusts: options.trusts,
    read: (each) => book.get(each),
    has: (each) => book.has(each),
    signatures: options.signatures,
    records: options.records,
    isSealedHere: upload.blobs.length === 0 && options.sealedHere?.(envelope) === true,
  });
  const admission = (await options.admit?.({ ...opened, digest, nowMs: clock.nowMs() })) ?? STORED;
  putBlobs(book, upload);
  options.signatures.put(upload.attestation);
  await book.flush();
  const { outcome } = await queue.complete(heldBy(worker, claim), envelope);
  if (outcome === "done") return answer(admission);
  if (outcome === "expired")
    return answer({ outcome, signals: [], message: "the claim was lost while the upload was on its way" });
  return answer({ outcome: "duplicate", signals: [], message: "this assignment has its result already" });
}

/** Opens the artifact that the queue marks as the result of an item. */
async function openDone({ queue, book }: WorkerServerOptions, item: string) {
  const state = await queue.state(item);
  if (state?.state !== "done")
    throw new RollbookError(
      "not-done",
      { item },
      `${item} is not done: there is nothing to give a receipt for.`,
    );
  const envelope = await readRecord(book, RolloutEnvelope, state.result);
  const digest = envelope.content;
  return { envelope, content: await readRecord(book, RolloutContent, digest), digest };
}

function oversize(bytes: number): Admission {
  const signal: Receipt["signals"][number] = {
    name: parseId("inline-bytes"),
    observed: bytes,
    acceptBudget: INLINE_LIMIT_BYTES,
    quarantineBudget: null,
    outcome: "oversize",
  };
  const message = `${bytes} bytes inline, the limit is ${INLINE_LIMIT_BYTES}: put the blobs into the book and upload by reference`;
  return { outcome: "oversize", signals: [signal], message };
}

/** Puts referenced blobs first and the envelope last, as the commit mark. The attestation follows the envelope. */
function putBlobs(book: WorkerServerOptions["book"], { blobs }: Upload): void {
  const isEnvelope = ({ kind }: Blob) => kind === RolloutEnvelope.kind;
  for (const { kind, bytes } of [...blobs.filter((blob) => !isEnvelope(blob)), ...blobs.filter(isEnvelope)])
    book.put(kind, bytes);
}
