/** One sealed example of every record kind, with every optional field set. Written by hand. */
import { digestJson } from "../../src/base/digest.ts";
import type { Digest } from "../../src/base/index.ts";
import { decodeWire, RECORD_TYPES, type Sealed, seal, signerFromPem } from "../../src/contract/index.ts";
import { draftWire, makeRollout, stepWire } from "./shelf.ts";

type Wire = Record<string, unknown>;

export const d = (name: string): Digest => digestJson("test.example", name);

/** A fixed key for tests only, so that the example is the same every time. */
const KEY =
  "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n";
export const exampleSigner = signerFromPem(KEY);

const revision = { id: "policy-r1", digest: d("weights") };
const counts = { artifacts: 1, streams: 2, samples: 3, tokens: 4 };
const none = { artifacts: 0, streams: 0, samples: 0, tokens: 0 };
const sums = { rows: 1, samples: 2, rewardSum: 1, rewardMean: 1, advantageSum: 0.5, advantageMean: 0.25 };
const column = (dtype: string, length: number) => ({ digest: d(dtype), dtype, length });
const split = { unit: "task", salt: "rollbook", shares: [0.6, 0.2, 0.2] };
const { steps } = stepWire() as { steps: Wire[] };

/** The wire form of each record without its `schema`. */
export const EXAMPLE_WIRES: Readonly<Record<string, Wire>> = {
  "rollbook.policy-revision.v1": {
    family: "train.decoder",
    id: "policy-r2",
    number: "18446744073709551615",
    digest: d("weights-2"),
    parent: revision,
    checkpoint: {
      family: "train.decoder",
      streamId: "stream-1",
      manifestDigest: d("manifest"),
      objectDigest: d("object"),
      startedAtMs: 1,
      ref: "s3://bucket/checkpoint",
      step: "12",
      durableAtMs: 2,
      writerNodeId: "node-1",
      membershipEpoch: "4",
      clusterStateDigest: d("cluster"),
      topologyDigest: d("topology"),
    },
    training: { batches: [d("batch")], configDigest: d("config"), seed: "7", steps: 10 },
    producedAtMs: 1000,
    origin: { format: "psionic-v1", fields: { policy_digest: "digest-r2" } },
  },
  "rollbook.environment-package.v1": {
    key: "env.weather@1",
    execution: {
      entrypoint: "run.sh",
      args: ["--fast"],
      sandboxProfile: "strict",
      maxTurns: 8,
      timeBudgetMs: 60_000,
    },
    files: [{ path: "bin/run.sh", digest: d("file") }],
    tools: [{ name: "search" }],
    datasets: [{ name: "train", digest: d("dataset") }],
    rubrics: [{ name: "exact", digest: d("rubric") }],
    difficulty: "easy",
    benchmarkProfiles: [{ name: "smoke" }],
  },
  "rollbook.task.v1": {
    id: "task-paris",
    environment: "env.weather@1",
    payload: { city: "Paris" },
    prompt: "How is the weather?",
    label: { answer: "rain" },
    split: "train",
    dataSource: "real",
  },
  "rollbook.assignment.v1": {
    id: "assignment-1",
    environment: "env.weather@1",
    task: { id: "task-paris", digest: d("task") },
    group: "group-1",
    samples: 4,
    seed: "9007199254740993",
  },
  "rollbook.call.v1": {
    dialect: "openai-chat",
    model: "tiny-lm",
    revision: { family: "train.decoder", ...revision },
    request: {
      messages: [d("m1")],
      tools: d("tools"),
      parameters: { temperature: 0.5 },
      bodyDigest: d("body"),
      sentDigest: d("sent"),
    },
    response: { messages: [d("m2")], finishReason: "stop", status: 200, bodyDigest: d("answer") },
    media: [d("image")],
    usage: { promptTokens: 5, completionTokens: 6, cachedTokens: 1 },
    tokenizer: d("tokenizer"),
    costUsd: 0.001,
    declaredLatencyMs: 12.5,
  },
  "rollbook.rollout-content.v1": {
    rolloutId: "rollout-1",
    environment: "env.weather@1",
    environmentDigest: d("package"),
    task: { id: "task-paris", digest: d("task") },
    assignment: { digest: d("assignment"), sample: 1 },
    group: "group-1",
    seed: "18446744073709551615",
    dataSource: "synthetic",
    sampling: { temperature: 1 },
    calls: [d("call")],
    streams: [
      {
        level: "token",
        family: "train.decoder",
        logprobKind: "sampling",
        tokenizer: d("tokenizer"),
        length: 5,
        samples: 3,
        columns: {
          ids: column("u32", 5),
          logprobs: column("f32", 5),
          mask: column("u8", 5),
          turns: column("u32", 5),
          rewards: column("f32", 5),
          advantages: column("f32", 5),
        },
        segments: [
          { start: 0, end: 3, call: 0, revision },
          { start: 3, end: 5, revision: { id: "policy-r2", digest: d("weights-2") } },
        ],
      },
      {
        level: "step",
        family: "router",
        steps: [
          {
            ...steps[0],
            context: [0.5],
            advantage: 0.25,
            reason: "cheap",
            call: 0,
            policy: revision,
            confidence: 0.75,
            shadow: {
              revision: { id: "router-r9", digest: d("router-9") },
              chosen: 1,
              probabilities: [0.25, 0.75, 0],
            },
            candidates: [
              { id: "small", selectable: true, reasons: [], probability: 0.75, label: 1, features: [1, 2] },
              { id: "large", selectable: true, reasons: [], probability: 0.25 },
              { id: "huge", selectable: false, reasons: ["over-budget"], probability: 0 },
            ],
          },
          { ...steps[0], parent: 0, reward: null },
        ],
      },
    ],
    scores: [{ name: "exact", value: 1, weight: 0.5, scorer: d("scorer") }],
    ending: { kind: "failed", owner: "agent", message: "gave up" },
    finalState: d("state"),
  },
  "rollbook.rollout-envelope.v1": {
    content: d("content"),
    worker: "worker-a",
    attempt: 2,
    claim: "claim-1",
    startedAtMs: 1000,
    endedAtMs: 2000,
    callTimes: [{ startedAtMs: 1100, firstByteMs: 3.5, durationMs: 20, delivery: "sent" }],
    proofs: [
      { kind: "call-log", digest: d("p1") },
      { kind: "commitment", digest: d("p2"), nonce: "n" },
      { kind: "execution", digest: d("p3"), reference: "exec://1" },
      { kind: "validator-bundle", digest: d("p4"), reference: "bundle://1" },
    ],
    origin: { format: "psionic-v1", fields: { "proof_references.0.digest": "proof-a" } },
  },
  "rollbook.attestation.v1": (() => {
    const { schema: _, ...wire } = exampleSigner.attest([d("a"), d("b")]).record;
    return wire;
  })(),
  "rollbook.rollout-event.v1": {
    rollout: "rollout-1",
    event: {
      kind: "called",
      index: 1,
      call: d("call"),
      steps: [steps[0]],
      stepFamily: "router",
      parent: 0,
      tokens: {
        family: "train.decoder",
        revision,
        logprobKind: "sampling",
        tokenizer: d("tokenizer"),
        keep: 4,
        prompt: column("u32", 2),
        samples: [{ ids: column("u32", 3), logprobs: column("f32", 3) }],
      },
      outcome: "answered",
      startedAtMs: 1100,
      firstByteMs: 3.5,
      durationMs: 20,
      deliveries: [{ call: 0, delivery: "sent" }],
    },
  },
  "rollbook.feedback.v1": {
    subject: d("content"),
    call: 0,
    name: "accepted",
    value: 1,
    source: "user",
    idempotencyKey: "key-1",
    atMs: 5,
  },
  "rollbook.verdict.v1": {
    subject: d("content"),
    validator: "validator-1",
    disposition: "normalized",
    weightBps: 5000,
    codes: ["duplicate-detected", "contribution-normalized"],
    observations: [{ name: "tokens", observed: 3, expected: 3 }],
    atMs: 6,
  },
  "rollbook.release.v1": {
    subject: d("content"),
    verdict: d("verdict"),
    by: "owner",
    reason: "looked at it",
    atMs: 7,
  },
  "rollbook.receipt.v1": {
    subject: d("content"),
    claim: "claim-1",
    worker: "worker-a",
    outcome: "quarantined",
    signals: [
      { name: "drift", observed: 4, acceptBudget: 3, quarantineBudget: 5, outcome: "quarantined" },
      { name: "age", observed: null, acceptBudget: null, quarantineBudget: null, outcome: "unknown" },
    ],
    message: "4 revisions behind",
    atMs: 8,
  },
  "rollbook.manifest.v1": {
    artifacts: [{ content: d("content"), envelope: d("envelope") }],
    revisions: [d("revision")],
    verdicts: [d("verdict")],
    releases: [d("release")],
    feedback: [d("feedback")],
  },
  "rollbook.policy-revision-lineage.v1": {
    family: "train.decoder",
    target: { id: "policy-r3", digest: d("weights-3"), record: d("revision-3"), number: "3" },
    sources: [
      { ...revision, record: d("revision-1"), number: "1", drift: "2" },
      { id: "policy-r2", digest: d("weights-2"), record: d("revision-2"), drift: null },
    ],
  },
  "rollbook.trainer-batch.v1": {
    manifest: d("manifest"),
    target: { id: "policy-r3", digest: d("weights-3") },
    selection: { family: "train.decoder", level: "token", logprobKind: "sampling" },
    seed: "1",
    options: {
      advantage: "mean-std",
      feedback: "accepted",
      maxLength: 100,
      requireVerdict: true,
      shardTokens: 1000,
    },
    lineage: d("lineage"),
    totals: sums,
    bySource: [{ revision, ...sums }],
    groups: d("groups"),
    groupCount: 1,
    proofs: d("proofs"),
    proofCount: 4,
    ledger: d("ledger"),
    tokens: 3,
    shards: [{ digest: d("shard"), rows: 1, samples: 2 }],
  },
  "rollbook.batch-shard.v1": {
    rows: [
      {
        content: d("content"),
        stream: 0,
        rolloutId: "rollout-1",
        group: "group-1",
        weightBps: 10_000,
        start: 0,
        length: 3,
        samples: 2,
        reward: 1,
        segments: [[0, 3, 0]],
      },
    ],
    data: {
      level: "token",
      columns: {
        ids: column("u32", 3),
        logprobs: column("f32", 3),
        mask: column("u8", 3),
        turns: column("u32", 3),
        rewards: column("f32", 3),
        advantages: column("f32", 3),
      },
    },
  },
  "rollbook.batch-groups.v1": {
    groups: [{ group: "group-1", rollouts: 1, baseline: 1, spread: 0, ...sums }],
  },
  "rollbook.batch-proofs.v1": { proofs: [{ kind: "execution", digest: d("p3"), reference: "exec://1" }] },
  "rollbook.loss-ledger.v1": {
    manifest: d("manifest"),
    considered: counts,
    batched: none,
    excluded: counts,
    reasons: [{ reason: "cancelled", ...counts }],
    pages: [d("page")],
  },
  "rollbook.ledger-page.v1": {
    entries: [
      {
        content: d("content"),
        stream: null,
        reason: "cancelled",
        samples: 3,
        tokens: 4,
        detail: "by the user",
      },
    ],
  },
  "rollbook.bandit-increment.v1": {
    filters: { family: "router" },
    features: { schema: "rollbook.feature-spec.v1", wordBuckets: 0 },
    arms: ["large", "small"],
    decisions: { count: 2, ids: column("u8", 11), units: column("u8", 3) },
    rewards: { low: -1, high: 1 },
    columns: {
      counts: column("f64", 2),
      sums: column("f64", 2),
      gram: column("f64", 12),
      response: column("f64", 6),
    },
    merges: [d("increment")],
  },
  "rollbook.floor-promise.v1": {
    policy: revision,
    table: d("table"),
    floor: 0.7,
    alpha: 0.1,
    units: 400,
    largestLoss: 20,
    empiricalRisk: 0.04,
    bound: 0.09,
    coverage: 0.8,
    feedback: "bandit",
    measure: "quality",
    range: { low: 0, high: 1 },
    propensityFloor: 0.05,
    data: d("rows"),
    split,
    atMs: 1,
  },
  "rollbook.gate-verdict.v1": {
    outcome: "pass",
    passed: revision,
    candidates: [
      {
        revision,
        router: {
          digest: d("router"),
          table: d("table"),
          floor: 0.7,
          exploration: 0.1,
          constraints: { maxLatencyMs: 500 },
          promise: d("promise"),
        },
        outcome: "pass",
        reasons: [],
        checks: [
          {
            measure: "quality",
            candidate: 0.8,
            baseline: 0.78,
            difference: 0.02,
            standardError: 0.01,
            bound: 0.004,
            epsilon: 0.01,
            clears: true,
          },
        ],
        support: { effectiveSize: 200, largestWeight: 4, meanWeight: 1.01, unsupportedMass: 0 },
        live: 0.9,
      },
    ],
    baseline: {
      kind: "policy",
      digest: d("baseline"),
      revision: { id: "policy-r0", digest: d("weights-0") },
    },
    rule: {
      method: "confidence-sequence",
      alpha: 0.05,
      tried: 2,
      correction: "bonferroni",
      perCandidate: 0.025,
      epsilonQuality: 0.01,
      epsilonCost: 0,
      propensityFloor: 0.05,
      ranges: { quality: { low: 0, high: 1 } },
    },
    data: {
      digest: d("rows"),
      rows: 400,
      units: 400,
      unlabelled: 3,
      leftOut: { train: 900, calibration: 300 },
    },
    split,
    seed: "7",
    atMs: 1,
  },
  "rollbook.rollback.v1": {
    family: "router",
    from: { digest: d("router-2"), policy: revision },
    to: { digest: d("router-1"), policy: { id: "policy-r0", digest: d("weights-0") } },
    verdict: d("verdict"),
    evidence: {
      method: "confidence-sequence",
      alpha: 0.05,
      margin: 0,
      range: { low: 0, high: 1 },
      comparedWith: "record",
      feedback: "solved",
      pairs: 4,
      fresh: 0.25,
      before: 0.75,
      difference: -0.5,
      upper: -0.01,
      clipped: 1,
      terms: column("f64", 4),
      decisions: column("u8", 40),
      manifest: d("manifest"),
    },
    by: "rollbook",
    atMs: 9,
  },
  "rollbook.named-router.v1": {
    family: "sim.router",
    router: d("router"),
    policy: { kind: "checkpoint", revision },
    table: { schema: "rollbook.static-table.v1", rules: [], default: ["small"] },
    floor: 0,
    exploration: 0.2,
    seed: "7",
  },
  "rollbook.loop-transition.v1": {
    run: "loop",
    window: 2,
    previous: [d("final")],
    step: {
      state: "planned",
      config: d("config"),
      world: d("world"),
      policy: { kind: "revision", revision },
      router: { id: "router-1", digest: d("router") },
      releases: 1,
      baseline: { id: "other-w3", digest: d("other") },
      value: 0.75,
      best: 0.875,
    },
  },
  "rollbook.loop-members.v1": {
    run: "loop",
    window: 2,
    rollouts: [{ id: "r-1", content: d("content") }],
  },
  "rollbook.loop-envelope.v1": {
    transition: d("transition"),
    atMs: 1,
    batch: d("batch"),
    revision: d("revision"),
    router: d("router-record"),
    verdict: d("verdict"),
  },
  "rollbook.run-pack.v1": {
    run: { kind: "bench", name: "smoke", digest: d("suite") },
    command: ["bench", "run", "--suite", "suite.yaml"],
    code: { version: "0.1.0", commit: "0123abc", dirty: false, lockfile: d("lockfile") },
    node: "v20.19.0",
    machine: { platform: "linux", arch: "x64", cpu: "a processor", cores: 2, memoryBytes: 1024 },
    files: [{ path: "results.json", bytes: 3, digest: d("results") }],
    signer: `ed25519:${"A".repeat(43)}`,
    sealedAtMs: 1,
  },
  "rollbook.head.v1": signedHead(),
  "rollbook.tombstone.v1": {
    subjects: [{ rollout: "r-1", content: d("content") }],
    records: [{ digest: d("content"), kind: "rollbook.rollout-content.v1" }],
    blobs: [{ digest: d("message"), kind: "rollbook.message.v1" }],
    reason: "privacy request 17",
    by: "owner",
    atMs: 1,
  },
};

function signedHead(): Wire {
  const hash = (name: string) => d(name).slice(7);
  const { schema: _, ...wire } = exampleSigner.signHead({
    book: hash("book"),
    sequence: 3,
    previous: [d("head-2")],
    packs: [{ pack: "20260102T030405678Z-0123456789ab-000001", entries: 12, chain: hash("chain") }],
    replaced: [{ pack: "20260101T030405678Z-0123456789ab-000001", entries: 9, chain: hash("replaced") }],
    atMs: 1,
  }).record;
  return wire;
}

export function exampleWire(kind: string): Wire {
  const wire = EXAMPLE_WIRES[kind];
  if (wire === undefined) throw new Error(`no example of ${kind}: add one to test/support/examples.ts`);
  return { schema: kind, ...wire };
}

export function examples(): Sealed<unknown>[] {
  return RECORD_TYPES.map((type) => seal(type, decodeWire(type, exampleWire(type.kind), type.kind) as never));
}

export { draftWire, makeRollout, stepWire };
