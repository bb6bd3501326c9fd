/** A worker server over an in-memory queue and book, with one assignment of a few samples and an honest worker. */
import type { Digest } from "../../src/base/digest.ts";
import { manualClock, parseId } from "../../src/base/index.ts";
import type { Claim } from "../../src/collect/queue/queue.ts";
import { openSqliteQueue } from "../../src/collect/queue/sqlite-queue.ts";
import { claimId, workItems } from "../../src/collect/rollout/work/work-item.ts";
import type { Upload } from "../../src/collect/rollout/worker/upload.ts";
import {
  makeWorkerServer,
  type WorkerServerOptions,
} from "../../src/collect/rollout/worker/worker-protocol.ts";
import { makeRegistration } from "../../src/collect/rollout/worker/worker-registration.ts";
import {
  Assignment,
  newKeyPem,
  type SealedRollout,
  type Signer,
  sampleSeed,
  seal,
  signerFromPem,
} from "../../src/contract/index.ts";
import { memoryStore } from "../../src/store/index.ts";
import { makeRollout } from "./shelf.ts";

export type Wire = Record<string, unknown>;

export const assignment = seal(Assignment, {
  id: parseId("assignment-1"),
  environment: "env.weather@1" as Assignment["environment"],
  task: { id: parseId("task-paris") },
  group: parseId("group-1"),
  samples: 3,
  seed: 7n,
});

export async function openWorkerServer(options: Partial<WorkerServerOptions> = {}) {
  const clock = manualClock(1_000_000);
  const queue = openSqliteQueue(":memory:", { clock });
  const book = memoryStore();
  book.put(assignment.kind, assignment.bytes);
  await queue.enqueue(workItems(assignment));
  let sessions = 0;
  const newSession = () => `session-${sessions++}`;
  const server = makeWorkerServer({ queue, book, clock, trusts: () => true, newSession, ...options });
  const join = (worker: string, signer = signerFromPem(newKeyPem())) => {
    const { session } = server.register(makeRegistration(signer, worker, clock.nowMs()));
    return { session, signer, worker };
  };
  return { clock, queue, book, server, join };
}

/** The artifact that `claim` requests; `over` and `stream` change it. */
export function rolloutFor(claim: Claim, over: Wire = {}, stream: Wire = {}): SealedRollout {
  const { assignment: digest, sample } = claim.payload as { assignment: Digest; sample: number };
  const { envelope, ...content } = over as { envelope?: Wire };
  return makeRollout(
    claim.item,
    {
      assignment: { digest, sample },
      seed: String(sampleSeed(digest, sample)),
      envelope: {
        worker: claim.worker,
        claim: claimId(claim),
        attempt: claim.attempt,
        startedAtMs: 999_000,
        endedAtMs: 999_900,
        ...envelope,
      },
      ...content,
    },
    stream,
  );
}

export function uploadOf(claim: Claim, rollout: SealedRollout, signer: Signer): Upload {
  const { content, envelope, blobs } = rollout;
  return {
    claim: { item: claim.item, token: claim.token },
    content: content.digest,
    envelope: envelope.digest,
    attestation: signer.attest([envelope.digest]).bytes,
    blobs,
  };
}
