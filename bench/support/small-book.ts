/** A small book with every kind of record, all signed. Campaigns damage it. */
import { manualClock } from "../../src/base/clock.ts";
import { digestJson } from "../../src/base/digest.ts";
import { parseId } from "../../src/base/ids.ts";
import {
  Assignment,
  type EnvironmentKey,
  EnvironmentPackage,
  Feedback,
  newKeyPem,
  parseRolloutDraft,
  QuarantineRelease,
  Receipt,
  rolloutIdFor,
  type Sealed,
  type SealedRollout,
  type Signer,
  sampleSeed,
  seal,
  sealManifest,
  sealRollout,
  signerFromPem,
  Task,
  type UnsignedHead,
  Verdict,
} from "../../src/contract/index.ts";
import { assembleBatch } from "../../src/keep/batch/index.ts";
import { openBook } from "../../src/store/index.ts";
import { makeSealer } from "../../src/store/sealer.ts";
import { FAMILY, makeRevisions, makeRolloutAt } from "./rollouts.ts";

/** `withHeads`: the book also has signed heads. Returns the signing key. */
export async function fillBook(directory: string, { withHeads = false } = {}): Promise<Signer> {
  const signer = signerFromPem(newKeyPem());
  const sign = withHeads ? () => (head: UnsignedHead) => signer.signHead(head) : undefined;
  const book = await openBook(directory, { clock: manualClock(1_700_000_000_000), sign });
  const sealer = makeSealer(book, signer);
  const revisions = makeRevisions();
  const environment = seal(EnvironmentPackage, {
    key: "env.bench@1" as EnvironmentKey,
    execution: { entrypoint: "run.js", args: ["--fast"], maxTurns: 4, timeBudgetMs: 60_000 },
    files: [{ path: "run.js", digest: digestJson("bench.file", 1) }],
    tools: [{ name: "search" }],
    datasets: [{ name: parseId("train"), digest: digestJson("bench.data", 1) }],
    rubrics: [],
    benchmarkProfiles: [],
  });
  const task = seal(Task, {
    id: parseId("task-0"),
    environment: environment.record.key,
    payload: { question: "1 + 1" },
    label: 2,
    dataSource: "synthetic",
  });
  const assignment = seal(Assignment, {
    id: parseId("assignment-0"),
    environment: environment.record.key,
    task: { id: task.record.id, digest: task.digest },
    group: parseId("group-a"),
    samples: 2,
    seed: 9n,
  });
  const rollouts = [
    ...Array.from({ length: 6 }, (_, i) =>
      makeRolloutAt(i, { tokens: 24, turns: 2, groupSize: 3, calls: i === 0 ? 2 : 0 }),
    ),
    ...[0, 1].map((sample) =>
      assignedRollout(assignment, environment.digest, sample, revisions[0]!.record.digest),
    ),
  ];
  const subject = rollouts[1]!.content.digest;
  const verdict = seal(Verdict, {
    subject,
    validator: parseId("validator"),
    disposition: "quarantined",
    weightBps: 10_000,
    codes: ["timer-integrity-mismatch"],
    observations: [{ name: parseId("clock"), observed: 3, expected: 2 }],
    atMs: 5,
  });
  const release = seal(QuarantineRelease, {
    subject,
    verdict: verdict.digest,
    by: parseId("owner"),
    reason: "the clock was wrong",
    atMs: 6,
  });
  const feedback = seal(Feedback, {
    subject,
    name: parseId("accepted"),
    value: 1,
    source: "user",
    idempotencyKey: "k",
    atMs: 7,
  });
  const receipt = seal(Receipt, {
    subject: rollouts[0]!.envelope.digest,
    worker: parseId("worker-0"),
    outcome: "accepted-exact",
    signals: [
      {
        name: parseId("drift"),
        observed: 0,
        acceptBudget: 3,
        quarantineBudget: 5,
        outcome: "accepted-exact",
      },
    ],
    message: "fresh",
    atMs: 8,
  });
  const roots: Sealed<unknown>[] = [
    ...revisions,
    environment,
    task,
    assignment,
    verdict,
    release,
    feedback,
    receipt,
  ];
  for (const record of roots) book.put(record.kind, record.bytes);
  await Promise.all(rollouts.map((each) => sealer.add(each)));
  const manifest = sealManifest({
    artifacts: rollouts.map((each) => ({ content: each.content.digest, envelope: each.envelope.digest })),
    revisions: revisions.map((each) => each.digest),
    verdicts: [verdict.digest],
    releases: [release.digest],
    feedback: [feedback.digest],
  });
  book.put(manifest.kind, manifest.bytes);
  const batch = await assembleBatch({
    read: (digest) => book.get(digest),
    write: (blob) => book.put(blob.kind, blob.bytes),
    manifest: manifest.digest,
    target: revisions.at(-1)!.digest,
    selection: { level: "token", family: FAMILY },
    seed: 1n,
  });
  const attestation = signer.attest([...roots.map((each) => each.digest), manifest.digest, batch.digest]);
  book.put(attestation.kind, attestation.bytes);
  await book.close();
  return signer;
}

/** A rollout bound to its assignment, with a step stream beside the tokens. */
function assignedRollout(
  assignment: Sealed<Assignment>,
  environmentDigest: string,
  sample: number,
  weights: string,
): SealedRollout {
  const revision = { id: "r0", digest: weights };
  return sealRollout(
    parseRolloutDraft({
      schema: "rollbook.rollout.v1",
      rolloutId: rolloutIdFor(assignment.digest, sample),
      environment: assignment.record.environment,
      environmentDigest,
      task: assignment.record.task,
      assignment: { digest: assignment.digest, sample },
      group: assignment.record.group,
      seed: sampleSeed(assignment.digest, sample).toString(),
      dataSource: "synthetic",
      sampling: {},
      calls: [],
      scores: [{ name: "verified", value: sample, weight: 1 }],
      ending: { kind: "truncated", limit: "turns" },
      streams: [
        {
          level: "token",
          family: FAMILY,
          logprobKind: "sampling",
          revision,
          ids: [1, 2],
          logprobs: [-1, -2],
          rewards: [0, sample],
        },
        {
          level: "step",
          family: "router",
          steps: [
            {
              revision,
              turn: 0,
              candidates: [
                { id: "small", selectable: true, reasons: [], probability: 0.75, label: 0.5 },
                { id: "large", selectable: true, reasons: [], probability: 0.25 },
                { id: "huge", selectable: false, reasons: ["over-budget"], probability: 0 },
              ],
              chosen: sample,
              reward: sample,
            },
          ],
        },
      ],
      envelope: {
        worker: "worker-0",
        startedAtMs: 1,
        endedAtMs: 2,
        proofs: [{ kind: "execution", digest: digestJson("bench.log", sample), reference: "log" }],
      },
    }),
  );
}
