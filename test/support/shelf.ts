/** A shelf of sealed records in a Map, and short functions to put records on it. For tests only. */
import { digestJson } from "../../src/base/digest.ts";
import { parseId } from "../../src/base/ids.ts";
import type { Digest } from "../../src/base/index.ts";
import {
  Feedback,
  PolicyRevision,
  parseRolloutDraft,
  QuarantineRelease,
  type RolloutDraft,
  type Sealed,
  type SealedBlob,
  type SealedRollout,
  seal,
  sealManifest,
  sealRollout,
  Verdict,
} from "../../src/contract/index.ts";

export const FAMILY = "train.decoder";

export function weightsOf(id: string): Digest {
  return digestJson("test.weights", id);
}

export function makeRevision(id: string, over: Partial<PolicyRevision> = {}): Sealed<PolicyRevision> {
  return seal(PolicyRevision, {
    family: parseId(FAMILY),
    id: parseId(id),
    digest: weightsOf(id),
    producedAtMs: 1000,
    ...over,
  });
}

type Wire = Record<string, unknown>;

/** The exchange form of a small valid token rollout; `over` replaces top-level fields, `stream` those of its stream. */
export function draftWire(name: string, over: Wire = {}, stream: Wire = {}): Wire {
  return {
    schema: "rollbook.rollout.v1",
    rolloutId: name,
    environment: "env.weather@1",
    task: { id: "task-paris" },
    group: "group-1",
    seed: "7",
    dataSource: "synthetic",
    sampling: { temperature: 1 },
    calls: [],
    scores: [],
    ending: { kind: "terminal" },
    streams: [
      {
        level: "token",
        family: FAMILY,
        logprobKind: "sampling",
        revision: { id: "policy-r1", digest: weightsOf("policy-r1") },
        ids: [101, 202, 303],
        logprobs: [0, -0.25, -0.5],
        mask: [0, 1, 1],
        rewards: [0, 0.25, 0.75],
        ...stream,
      },
    ],
    envelope: { worker: "worker-a", startedAtMs: 1100, endedAtMs: 1200 },
    ...over,
  };
}

export function stepWire(over: Wire = {}): Wire {
  const { step, ...rest } = over as { step?: Wire };
  return {
    level: "step",
    family: "router",
    steps: [
      {
        revision: { id: "router-r1", digest: weightsOf("router-r1") },
        turn: 0,
        candidates: [
          { id: "small", selectable: true, reasons: [], probability: 0.75 },
          { id: "large", selectable: true, reasons: [], probability: 0.25 },
          { id: "huge", selectable: false, reasons: ["over-budget"], probability: 0 },
        ],
        chosen: 0,
        reward: 1,
        ...step,
      },
    ],
    ...rest,
  };
}

export function makeRollout(name: string, over: Wire = {}, stream: Wire = {}): SealedRollout {
  return sealRollout(parseRolloutDraft(draftWire(name, over, stream)));
}

export class Shelf {
  readonly blobs = new Map<Digest, { kind: string; bytes: Uint8Array }>();
  readonly artifacts: { content: Digest; envelope: Digest }[] = [];
  readonly listed = {
    revisions: [] as Digest[],
    verdicts: [] as Digest[],
    releases: [] as Digest[],
    feedback: [] as Digest[],
  };

  readonly read = async (digest: Digest) => this.blobs.get(digest);
  readonly write = (blob: SealedBlob): void => {
    this.blobs.set(blob.digest, blob);
  };

  revision(id: string, over: Partial<PolicyRevision> = {}): Sealed<PolicyRevision> {
    const revision = makeRevision(id, over);
    this.write(revision);
    this.listed.revisions.push(revision.digest);
    return revision;
  }

  rollout(name: string, over: Wire = {}, stream: Wire = {}): SealedRollout {
    const sealed = makeRollout(name, over, stream);
    for (const blob of sealed.blobs) this.write(blob);
    this.artifacts.push({ content: sealed.content.digest, envelope: sealed.envelope.digest });
    return sealed;
  }

  verdict(subject: Digest, over: Partial<Verdict> = {}): Sealed<Verdict> {
    const observations = [{ name: parseId("tokens"), observed: 3 }];
    const full = {
      subject,
      validator: parseId("v1"),
      disposition: "accepted",
      weightBps: 10_000,
      codes: [],
      observations,
      atMs: 1,
    } as const;
    const verdict = seal(Verdict, { ...full, codes: [], ...over });
    this.write(verdict);
    this.listed.verdicts.push(verdict.digest);
    return verdict;
  }

  release(subject: Digest, verdict: Digest): void {
    const release = seal(QuarantineRelease, {
      subject,
      verdict,
      by: parseId("owner"),
      reason: "looked at it",
      atMs: 2,
    });
    this.write(release);
    this.listed.releases.push(release.digest);
  }

  feedback(subject: Digest, value: number, over: Partial<Feedback> = {}): void {
    const feedback = seal(Feedback, {
      subject,
      name: parseId("accepted"),
      value,
      source: "user",
      idempotencyKey: "k1",
      atMs: 1,
      ...over,
    });
    this.write(feedback);
    this.listed.feedback.push(feedback.digest);
  }

  manifest(artifacts = this.artifacts): Digest {
    const manifest = sealManifest({ ...this.listed, artifacts });
    this.write(manifest);
    return manifest.digest;
  }
}

export type { RolloutDraft };
