/** Assignments of any size and valid work for their claims:
 *  a rollout of 300 tokens in four columns, sealed and signed. */
import type { Digest } from "../../src/base/digest.ts";
import { digestJson } from "../../src/base/digest.ts";
import { parseId } from "../../src/base/ids.ts";
import type { Claim } from "../../src/collect/queue/queue.ts";
import { claimId } from "../../src/collect/rollout/work/work-item.ts";
import type { Upload } from "../../src/collect/rollout/worker/upload.ts";
import {
  Assignment,
  type EnvironmentKey,
  type Sealed,
  type SealedRollout,
  type Signer,
  sampleSeed,
  seal,
  sealRollout,
} from "../../src/contract/index.ts";

const TOKENS = 300;
const REVISION = { id: parseId("r1"), digest: digestJson("bench.weights", 1) };

export function makeAssignment(samples: number, name = "bench"): Sealed<Assignment> {
  return seal(Assignment, {
    id: parseId(name),
    environment: "env.bench@1" as EnvironmentKey,
    task: { id: parseId(name) },
    group: parseId(name),
    samples,
    seed: 1n,
  });
}

export function rolloutOf(claim: Claim, assignment: Sealed<Assignment>): SealedRollout {
  const { assignment: digest, sample } = claim.payload as { assignment: Digest; sample: number };
  const { environment, task, group } = assignment.record;
  const seed = sampleSeed(digest, sample);
  const first = Number(seed & 0xffffn);
  return sealRollout({
    rolloutId: parseId(claim.item),
    environment,
    task,
    ...(group === undefined ? {} : { group }),
    assignment: { digest, sample },
    seed,
    dataSource: "synthetic",
    sampling: { temperature: 1 },
    calls: [],
    streams: [
      {
        level: "token",
        family: parseId("bench.decoder"),
        logprobKind: "sampling",
        revision: REVISION,
        ids: Uint32Array.from({ length: TOKENS }, (_, i) => first + i),
        logprobs: Float32Array.from({ length: TOKENS }, (_, i) => -((first + i) % 64) / 16),
        rewards: new Float32Array(TOKENS).fill(sample % 2, TOKENS - 1),
      },
    ],
    scores: [],
    ending: { kind: "terminal" },
    envelope: {
      worker: parseId(claim.worker),
      claim: parseId(claimId(claim)),
      attempt: claim.attempt,
      startedAtMs: 1000,
      endedAtMs: 2000,
    },
  });
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
